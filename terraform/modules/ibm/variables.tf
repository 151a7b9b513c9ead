variable "region" {
  description = "Region of IBM Cloud; the provider that is passed to this module must have the same one."
  type        = string
  default     = "us-east"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]{2}-[a-z]+$", var.region))
    error_message = "region is '${var.region}', which is no region of IBM Cloud: give one such as us-east."
  }
}

variable "zone" {
  description = "Zone of the nodes; empty for the first of the region's zones that has the type, as IBM says for your account. It stays what it was when the cluster was made."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.teardown || var.zone == "" || can(regex("^${var.region}-[1-9]$", var.zone))
    error_message = "zone is '${var.zone}', which is not in region ${var.region}: give one such as ${var.region}-2, or leave it empty."
  }
}

variable "resource_group" {
  description = "Resource group that everything belongs to; empty for the account's default one."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9 _.-]*$", var.resource_group))
    error_message = "resource_group is '${var.resource_group}', which is no name of one: give its name, or leave it empty."
  }
}

variable "image" {
  description = "Image of the nodes by its exact name; empty for the newest that image_pattern matches. 'ibmcloud is images --status available' lists them."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9][a-z0-9-]*)?$", var.image))
    error_message = "image is '${var.image}', which is no name of an image: look with 'ibmcloud is images'."
  }
}

variable "image_pattern" {
  description = "Regular expression for the names of images; the newest public one that is available and matches is taken. IBM renames its stock images with each release."
  type        = string
  default     = "^ibm-ubuntu-24-04-[0-9]+-minimal-amd64-[0-9]+$"
  nullable    = false

  validation {
    condition     = var.image_pattern != "" && can(regexall(var.image_pattern, "x"))
    error_message = "image_pattern is '${var.image_pattern}', which is no regular expression: give one such as ^ibm-ubuntu-24-04-."
  }
}

variable "catalog_offering" {
  description = "Image of IBM's catalogue, in place of image and image_pattern: its version by CRN, and its plan where it has plans; null for none. Give ssh_user with it."
  type = object({
    version_crn = string
    plan_crn    = optional(string)
  })
  default = null

  validation {
    condition     = var.catalog_offering == null || can(regex("^crn:v1:.*:version:", var.catalog_offering.version_crn))
    error_message = "catalog_offering has version_crn '${try(var.catalog_offering.version_crn, "?")}', which is no version of the catalogue: give it as crn:v1:...:version:..., as 'ibmcloud catalog offering' shows it."
  }

  validation {
    condition     = var.catalog_offering == null || (var.image == "" && var.ssh_user != "")
    error_message = "catalog_offering is given ${var.image == "" ? "without ssh_user" : "with image"}: leave image empty, and name the user that the image lets in as ssh_user."
  }
}

variable "ssh_user" {
  description = "User that the image lets in with the key; empty for the one that IBM's own images have (ubuntu, vpcuser on Red Hat, cloud-user on Red Hat AI)."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z_][a-z0-9_-]{0,31})?$", var.ssh_user))
    error_message = "ssh_user is '${var.ssh_user}', which is no user name on Linux: give the user of the image, such as ubuntu."
  }
}

variable "ssh_key_name" {
  description = "Name of a key that the account has in this region already, in place of ssh_public_key. IBM takes a key once in a region."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([a-z]|[a-z][-a-z0-9]*[a-z0-9])?$", var.ssh_key_name))
    error_message = "ssh_key_name is '${var.ssh_key_name}', which is no name of a key: look with 'ibmcloud is keys'."
  }
}

variable "ssh_key_ids" {
  description = "Ids of keys that the account has in this region already, in place of ssh_public_key, or beside ssh_key_name."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for id in var.ssh_key_ids : can(regex("^r[0-9]+-[0-9a-f-]{36}$", id))])
    error_message = "ssh_key_ids has '${join("', '", [for id in var.ssh_key_ids : id if !can(regex("^r[0-9]+-[0-9a-f-]{36}$", id))])}', which is no id of a key: look with 'ibmcloud is keys'."
  }
}

variable "capacity" {
  description = "How the nodes are bought: on-demand, spot (IBM may take a node back at any time), or reservation (a reservation for VPC of the same profile and zone)."
  type        = string
  default     = "on-demand"
  nullable    = false

  validation {
    condition     = contains(["on-demand", "spot", "reservation"], var.capacity)
    error_message = "capacity is '${var.capacity}': give on-demand, spot or reservation."
  }
}

variable "reservation_id" {
  description = "The reservation to use with capacity = reservation."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.teardown || (var.reservation_id != "") == (var.capacity == "reservation")
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
  nullable    = false

  validation {
    condition     = contains([8, 16, 32], var.cluster_network_subnets)
    error_message = "cluster_network_subnets is ${var.cluster_network_subnets}: give 8, 16 or 32, as IBM asks for."
  }
}

variable "internet" {
  description = "Whether the nodes reach the internet through a public gateway. Only the monitoring machine can have a public address (public_entry)."
  type        = bool
  default     = true
  nullable    = false
}

variable "monitor_instance_type" {
  description = "Profile of the monitoring machine."
  type        = string
  default     = "bx2-2x8"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]+-[a-z0-9]+$", var.monitor_instance_type))
    error_message = "monitor_instance_type is '${var.monitor_instance_type}', which is no profile of IBM Cloud: give one such as bx2-2x8."
  }
}

variable "network_interfaces" {
  description = "Network interfaces of a node, each in a subnet of its own. IBM gives a single one 32 Gbit/s at most, and pools none."
  type        = number
  default     = 5
  nullable    = false

  validation {
    condition     = var.network_interfaces >= 1 && var.network_interfaces <= 15 && floor(var.network_interfaces) == var.network_interfaces
    error_message = "network_interfaces is ${var.network_interfaces}: give 1 to 15, as the profile has at most 15."
  }
}

variable "public_entry" {
  description = "How ssh gets in from outside: monitor (the monitoring machine gets a public address and is the jump host), existing (jump_host is one of yours), or none."
  type        = string
  default     = "none"
  nullable    = false

  validation {
    condition     = contains(["monitor", "none", "existing"], var.public_entry)
    error_message = "public_entry is '${var.public_entry}': give monitor, existing or none."
  }

  validation {
    condition     = var.teardown || var.public_entry != "monitor" || (var.dedicated_monitor && length(var.allowed_cidrs) > 0 && var.jump_host == "")
    error_message = "public_entry is monitor, ${!var.dedicated_monitor ? "but there is no monitoring machine: set dedicated_monitor = true" : var.jump_host != "" ? "but jump_host is ${var.jump_host}: leave one of the two out" : "but no network may reach it: set allowed_cidrs to your own address, such as 198.51.100.7/32"}."
  }

  validation {
    condition     = var.teardown || var.public_entry != "existing" || var.jump_host != ""
    error_message = "public_entry is existing, but jump_host is empty: give the host through which ssh reaches the VPC, as user@host."
  }
}

variable "vpc_id" {
  description = "A VPC of yours to put the cluster's subnets in; empty for a new one. network_cidr must not overlap with its address prefixes."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^(r[0-9]+-[0-9a-f-]{36})?$", var.vpc_id))
    error_message = "vpc_id is '${var.vpc_id}', which is no id of a VPC: look with 'ibmcloud is vpcs'."
  }

  validation {
    condition     = var.vpc_id == "" || var.subnet_id == ""
    error_message = "vpc_id is given with subnet_id, whose VPC is taken: leave vpc_id out."
  }
}

variable "subnet_id" {
  description = "A subnet of yours to put all machines in; empty for new ones. Its zone and VPC are taken, and whether it reaches the internet is yours to decide."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9a-z]+-[0-9a-f-]{36})?$", var.subnet_id))
    error_message = "subnet_id is '${var.subnet_id}', which is no id of a subnet: look with 'ibmcloud is subnets'."
  }

  validation {
    condition     = var.subnet_id == "" || var.zone == ""
    error_message = "subnet_id is given with zone, but a subnet is in one zone: leave zone out."
  }
}

variable "checkpoint_credentials" {
  description = "How the trainer gets into the bucket: hmac (a key pair for S3 clients, which Terraform's state then holds), or none (you bring credentials of your own)."
  type        = string
  default     = "hmac"
  nullable    = false

  validation {
    condition     = contains(["hmac", "none"], var.checkpoint_credentials)
    error_message = "checkpoint_credentials is '${var.checkpoint_credentials}': give hmac or none."
  }
}

variable "noncurrent_days" {
  description = "Days for which a deleted or overwritten checkpoint can be restored, and is paid for."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.noncurrent_days >= 1 && floor(var.noncurrent_days) == var.noncurrent_days
    error_message = "noncurrent_days is ${var.noncurrent_days}: give a whole number from 1 on."
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
  nullable    = false
}

variable "flow_logs" {
  description = "Whether flow logs of the network are kept in a bucket of their own."
  type        = bool
  default     = true
  nullable    = false
}
