variable "project" {
  description = "Project that everything belongs to; empty for the provider's (GOOGLE_PROJECT)."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.project == "" || can(regex("^[a-z][a-z0-9:.-]{4,61}[a-z0-9]$", var.project))
    error_message = "project is '${var.project}', which is no project id: give it as in 'gcloud projects list', or leave it empty."
  }
}

variable "region" {
  description = "Region of Google Cloud."
  type        = string
  default     = "us-central1"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region is '${var.region}', which is no region of Google Cloud: give one such as us-central1."
  }
}

variable "zone" {
  description = "Zone of the nodes; empty for the region's zone a."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.zone == "" || can(regex("^${var.region}-[a-z]$", var.zone))
    error_message = "zone is '${var.zone}', which is not in region ${var.region}: give one such as ${var.region}-a, or leave it empty."
  }
}

variable "capacity" {
  description = "How the nodes are bought: on-demand, spot or reservation."
  type        = string
  default     = "on-demand"
  nullable    = false

  validation {
    condition     = contains(["on-demand", "spot", "reservation"], var.capacity)
    error_message = "capacity is '${var.capacity}': give on-demand, spot or reservation."
  }
}

variable "reservation" {
  description = "Name of the reservation to use with capacity = reservation."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = (var.reservation != "") == (var.capacity == "reservation")
    error_message = "reservation is '${var.reservation}' with capacity = ${var.capacity}: give its name with reservation, and with it only."
  }
}

variable "image" {
  description = "Image of the nodes, or a family of images, as project/name."
  type        = string
  default     = "ubuntu-os-cloud/ubuntu-2204-lts"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9:.-]+/[a-z0-9-]+$", var.image))
    error_message = "image is '${var.image}': give it as project/name, such as ubuntu-os-cloud/ubuntu-2204-lts."
  }
}

variable "guest_accelerator" {
  description = "Accelerator to add to types that have none by themselves, with its count; null for types that bring theirs."
  type = object({
    type  = string
    count = number
  })
  default = null

  validation {
    condition     = var.guest_accelerator == null || try(var.guest_accelerator.count, 0) >= 1
    error_message = "guest_accelerator has a count of ${try(var.guest_accelerator.count, 0)}: give 1 or more, or leave it out."
  }
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

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]{0,31}$", var.ssh_user)) && var.ssh_user != "root"
    error_message = "ssh_user is '${var.ssh_user}', which Google's images do not make: give a lower-case name other than root."
  }
}

variable "monitor_instance_type" {
  description = "Type of the monitoring machine."
  type        = string
  default     = "e2-standard-2"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]+-[a-z0-9-]+$", var.monitor_instance_type))
    error_message = "monitor_instance_type is '${var.monitor_instance_type}', which is no type of Google Cloud: give one such as e2-standard-2."
  }
}

variable "encryption_key" {
  description = "Cloud KMS key that encrypts disks and bucket, as projects/.../cryptoKeys/NAME; null for Google's own."
  type        = string
  default     = null

  validation {
    condition     = var.encryption_key == null || can(regex("^projects/.+/cryptoKeys/.+$", var.encryption_key))
    error_message = "encryption_key is '${coalesce(var.encryption_key, "?")}': give it as projects/P/locations/L/keyRings/R/cryptoKeys/K, or leave it out."
  }
}

variable "keep_checkpoints_days" {
  description = "After how many days a version of a checkpoint that was deleted or overwritten is gone for good."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.keep_checkpoints_days >= 1 && floor(var.keep_checkpoints_days) == var.keep_checkpoints_days
    error_message = "keep_checkpoints_days is ${var.keep_checkpoints_days}: give a whole number from 1 on."
  }
}

variable "destroy_checkpoints" {
  description = "Whether terraform destroy deletes the bucket with checkpoints in it; without it, it stops there."
  type        = bool
  default     = false
  nullable    = false
}
