variable "region" {
  description = "Region of IBM Cloud; the provider that is passed to this module must have the same one."
  type        = string
  default     = "us-east"

  validation {
    condition     = can(regex("^[a-z]{2}-[a-z]+$", var.region))
    error_message = "region is '${var.region}', which is no region of IBM Cloud: give one such as us-east."
  }
}

variable "zone" {
  description = "Zone of the nodes; empty for the region's first. Which zone has the machines differs from account to account: IBM names them by universal zone (docs/instances.md), and the console's endpoints page says what yours is called."
  type        = string
  default     = ""

  validation {
    condition     = var.zone == "" || can(regex("^${var.region}-[1-9]$", var.zone))
    error_message = "zone is '${var.zone}', which is not in region ${var.region}: give one such as ${var.region}-2, or leave it empty."
  }
}

variable "resource_group" {
  description = "Resource group that everything belongs to; empty for the account's default one."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[A-Za-z0-9 _.-]*$", var.resource_group))
    error_message = "resource_group is '${var.resource_group}', which is no name of one: give its name, or leave it empty."
  }
}

variable "image" {
  description = "Image of the nodes by name. IBM renames its stock images with each release, so the default may be gone: 'ibmcloud is images' lists them, those with a Gaudi driver as gaudi3-os-u22-..."
  type        = string
  default     = "ibm-ubuntu-24-04-2-minimal-amd64-5"

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]*$", var.image))
    error_message = "image is '${var.image}', which is no name of an image: look with 'ibmcloud is images'."
  }
}

variable "ssh_user" {
  description = "User that the image lets in with the key."
  type        = string
  default     = "ubuntu"

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]{0,31}$", var.ssh_user))
    error_message = "ssh_user is '${var.ssh_user}', which is no user name on Linux: give the user of the image, such as ubuntu."
  }
}

variable "capacity" {
  description = "How the nodes are bought: on-demand or reservation (a reservation for VPC of the same profile and zone)."
  type        = string
  default     = "on-demand"

  validation {
    condition     = contains(["on-demand", "reservation"], var.capacity)
    error_message = "capacity is '${var.capacity}': give on-demand or reservation."
  }
}

variable "reservation_id" {
  description = "The reservation to use with capacity = reservation."
  type        = string
  default     = ""

  validation {
    condition     = (var.reservation_id != "") == (var.capacity == "reservation")
    error_message = "reservation_id is '${var.reservation_id}' with capacity = ${var.capacity}: give the id with reservation, and with it only."
  }
}

variable "cluster_network_profile" {
  description = "Profile of a cluster network (RoCE between machines), such as hopper-1, for types that can be in one; null for none. IBM says that its Gaudi 3 profile cannot: its nodes talk over the VPC network."
  type        = string
  default     = null

  validation {
    condition     = var.cluster_network_profile == null || try(module.cluster.type.cluster_network, false)
    error_message = "cluster_network_profile is '${coalesce(var.cluster_network_profile, "?")}', but a ${var.instance_type} cannot be in a cluster network (IBM: 'Cluster network capable: No'): leave it out."
  }
}

variable "cluster_network_subnets" {
  description = "How many subnets a cluster network has, each with one interface per node."
  type        = number
  default     = 8

  validation {
    condition     = contains([8, 16, 32], var.cluster_network_subnets)
    error_message = "cluster_network_subnets is ${var.cluster_network_subnets}: give 8, 16 or 32, as IBM asks for."
  }
}

variable "internet" {
  description = "Whether the nodes reach the internet through a public gateway. They never have a public address."
  type        = bool
  default     = true
}

variable "monitor_instance_type" {
  description = "Profile of the monitoring machine."
  type        = string
  default     = "bx2-2x8"

  validation {
    condition     = can(regex("^[a-z0-9]+-[a-z0-9]+$", var.monitor_instance_type))
    error_message = "monitor_instance_type is '${var.monitor_instance_type}', which is no profile of IBM Cloud: give one such as bx2-2x8."
  }
}

variable "encryption_key_crn" {
  description = "Root key of Key Protect or Hyper Protect that encrypts volumes and bucket; null for IBM's own encryption."
  type        = string
  default     = null

  validation {
    condition     = var.encryption_key_crn == null || can(regex("^crn:v1:", var.encryption_key_crn))
    error_message = "encryption_key_crn is '${coalesce(var.encryption_key_crn, "?")}', which is no CRN: give it as crn:v1:..., or leave it out."
  }
}

variable "destroy_checkpoints" {
  description = "Whether terraform destroy deletes the bucket with checkpoints in it; without it, it stops there."
  type        = bool
  default     = false
}

variable "flow_logs" {
  description = "Whether flow logs of the network are kept in a bucket of their own."
  type        = bool
  default     = true
}
