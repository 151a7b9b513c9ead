# Written by terraform/generate.py from terraform/modules/ibm, where each variable is checked.

variable "region" {
  description = "Region of IBM Cloud; the provider that is passed to this module must have the same one."
  type        = string
  default     = "us-east"
  nullable    = false
}

variable "zone" {
  description = "Zone of the nodes; empty for the first of the region's zones that has the type, as IBM says for your account. It stays what it was when the cluster was made."
  type        = string
  default     = ""
  nullable    = false
}

variable "resource_group" {
  description = "Resource group that everything belongs to; empty for the account's default one."
  type        = string
  default     = ""
  nullable    = false
}

variable "image" {
  description = "Image of the nodes by its exact name; empty for the newest that image_pattern matches. 'ibmcloud is images --status available' lists them."
  type        = string
  default     = ""
  nullable    = false
}

variable "image_pattern" {
  description = "Regular expression for the names of images; the newest public one that is available and matches is taken. IBM renames its stock images with each release."
  type        = string
  default     = "^ibm-ubuntu-24-04-[0-9]+-minimal-amd64-[0-9]+$"
  nullable    = false
}

variable "catalog_offering" {
  description = "Image of IBM's catalogue, in place of image and image_pattern: its version by CRN, and its plan where it has plans; null for none. Give ssh_user with it."
  type = object({
    version_crn = string
    plan_crn    = optional(string)
  })
  default = null
}

variable "ssh_user" {
  description = "User that the image lets in with the key; empty for the one that IBM's own images have (ubuntu, vpcuser on Red Hat, cloud-user on Red Hat AI)."
  type        = string
  default     = ""
  nullable    = false
}

variable "ssh_key_name" {
  description = "Name of a key that the account has in this region already, in place of ssh_public_key. IBM takes a key once in a region."
  type        = string
  default     = ""
  nullable    = false
}

variable "ssh_key_ids" {
  description = "Ids of keys that the account has in this region already, in place of ssh_public_key, or beside ssh_key_name."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "capacity" {
  description = "How the nodes are bought: on-demand, spot (IBM may take a node back at any time), or reservation (a reservation for VPC of the same profile and zone)."
  type        = string
  default     = "on-demand"
  nullable    = false
}

variable "reservation_id" {
  description = "The reservation to use with capacity = reservation."
  type        = string
  default     = ""
  nullable    = false
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
  nullable    = false
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
}

variable "network_interfaces" {
  description = "Network interfaces of a node, each in a subnet of its own. IBM gives a single one 32 Gbit/s at most, and pools none."
  type        = number
  default     = 5
  nullable    = false
}

variable "public_entry" {
  description = "How ssh gets in from outside: monitor (the monitoring machine gets a public address and is the jump host), existing (jump_host is one of yours), or none."
  type        = string
  default     = "none"
  nullable    = false
}

variable "vpc_id" {
  description = "A VPC of yours to put the cluster's subnets in; empty for a new one. network_cidr must not overlap with its address prefixes."
  type        = string
  default     = ""
  nullable    = false
}

variable "subnet_id" {
  description = "A subnet of yours to put all machines in; empty for new ones. Its zone and VPC are taken, and whether it reaches the internet is yours to decide."
  type        = string
  default     = ""
  nullable    = false
}

variable "checkpoint_credentials" {
  description = "How the trainer gets into the bucket: hmac (a key pair for S3 clients, which Terraform's state then holds), or none (you bring credentials of your own)."
  type        = string
  default     = "hmac"
  nullable    = false
}

variable "noncurrent_days" {
  description = "Days for which a deleted or overwritten checkpoint can be restored, and is paid for."
  type        = number
  default     = 30
  nullable    = false
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
  nullable    = false
}

variable "flow_logs" {
  description = "Whether flow logs of the network are kept in a bucket of their own."
  type        = bool
  default     = true
  nullable    = false
}
