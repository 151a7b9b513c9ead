# Written by terraform/generate.py from terraform/modules/gcp, where each variable is checked.

variable "project" {
  description = "Project that everything belongs to; empty for the provider's (GOOGLE_PROJECT)."
  type        = string
  default     = ""
  nullable    = false
}

variable "region" {
  description = "Region of Google Cloud."
  type        = string
  default     = "us-central1"
  nullable    = false
}

variable "zone" {
  description = "Zone of the nodes; empty for the region's zone a."
  type        = string
  default     = ""
  nullable    = false
}

variable "capacity" {
  description = "How the nodes are bought: on-demand, spot or reservation."
  type        = string
  default     = "on-demand"
  nullable    = false
}

variable "reservation" {
  description = "Name of the reservation to use with capacity = reservation."
  type        = string
  default     = ""
  nullable    = false
}

variable "image" {
  description = "Image of the nodes, or a family of images, as project/name."
  type        = string
  default     = "ubuntu-os-cloud/ubuntu-2204-lts"
  nullable    = false
}

variable "guest_accelerator" {
  description = "Accelerator to add to types that have none by themselves, with its count; null for types that bring theirs."
  type = object({
    type  = string
    count = number
  })
  default = null
}

variable "compact_placement" {
  description = "Whether the nodes are placed close to each other; not every type can be."
  type        = bool
  default     = true
  nullable    = false
}

variable "ssh_user" {
  description = "User that is made on the nodes for the key."
  type        = string
  default     = "ubuntu"
  nullable    = false
}

variable "monitor_instance_type" {
  description = "Type of the monitoring machine."
  type        = string
  default     = "e2-standard-2"
  nullable    = false
}

variable "encryption_key" {
  description = "Cloud KMS key that encrypts disks and bucket, as projects/.../cryptoKeys/NAME; null for Google's own."
  type        = string
  default     = null
}

variable "keep_checkpoints_days" {
  description = "After how many days a version of a checkpoint that was deleted or overwritten is gone for good."
  type        = number
  default     = 30
  nullable    = false
}

variable "destroy_checkpoints" {
  description = "Whether terraform destroy deletes the bucket with checkpoints in it; without it, it stops there."
  type        = bool
  default     = false
  nullable    = false
}
