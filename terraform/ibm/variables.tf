# Written by terraform/generate.py from terraform/modules/ibm, where each variable is checked.

variable "region" {
  description = "Region of IBM Cloud; the provider that is passed to this module must have the same one."
  type        = string
  default     = "us-east"
}

variable "zone" {
  description = "Zone of the nodes; empty for the region's first. Which zone has the machines differs from account to account: IBM names them by universal zone (docs/instances.md), and the console's endpoints page says what yours is called."
  type        = string
  default     = ""
}

variable "resource_group" {
  description = "Resource group that everything belongs to; empty for the account's default one."
  type        = string
  default     = ""
}

variable "image" {
  description = "Image of the nodes by name. IBM renames its stock images with each release, so the default may be gone: 'ibmcloud is images' lists them, those with a Gaudi driver as gaudi3-os-u22-..."
  type        = string
  default     = "ibm-ubuntu-24-04-2-minimal-amd64-5"
}

variable "ssh_user" {
  description = "User that the image lets in with the key."
  type        = string
  default     = "ubuntu"
}

variable "capacity" {
  description = "How the nodes are bought: on-demand or reservation (a reservation for VPC of the same profile and zone)."
  type        = string
  default     = "on-demand"
}

variable "reservation_id" {
  description = "The reservation to use with capacity = reservation."
  type        = string
  default     = ""
}

variable "cluster_network_profile" {
  description = "Profile of a cluster network (RoCE between machines), such as hopper-1, for types that can be in one; null for none. IBM says that its Gaudi 3 profile cannot: its nodes talk over the VPC network."
  type        = string
  default     = null
}

variable "cluster_network_subnets" {
  description = "How many subnets a cluster network has, each with one interface per node."
  type        = number
  default     = 8
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
}

variable "encryption_key_crn" {
  description = "Root key of Key Protect or Hyper Protect that encrypts volumes and bucket; null for IBM's own encryption."
  type        = string
  default     = null
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
