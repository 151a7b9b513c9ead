variable "region" {
  description = "Region of Azure, as in 'az account list-locations'."
  type        = string
  default     = "westus3"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]+$", var.region))
    error_message = "region is '${var.region}', which is no region of Azure: give one such as westus3."
  }
}

variable "zone" {
  description = "Availability zone of the nodes (1, 2 or 3); empty leaves the choice to Azure."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = contains(["", "1", "2", "3"], var.zone)
    error_message = "zone is '${var.zone}': give 1, 2 or 3, or leave it empty."
  }
}

variable "capacity" {
  description = "How the nodes are bought: on-demand or spot."
  type        = string
  default     = "on-demand"
  nullable    = false

  validation {
    condition     = contains(["on-demand", "spot"], var.capacity)
    error_message = "capacity is '${var.capacity}': give on-demand or spot."
  }
}

variable "spot_max_price" {
  description = "The most to pay for a node per hour, in USD, with capacity = spot; null for the price on demand."
  type        = number
  default     = null

  validation {
    condition     = var.spot_max_price == null || (coalesce(var.spot_max_price, 0) > 0 && var.capacity == "spot")
    error_message = "spot_max_price is ${coalesce(var.spot_max_price, 0)} with capacity = ${var.capacity}: give a price above 0 with spot, and leave it out otherwise."
  }
}

variable "image" {
  description = "Image of the nodes, by the four parts of its name."
  type = object({
    publisher = string
    offer     = string
    sku       = string
    version   = string
  })
  default = {
    publisher = "Canonical"
    offer     = "0001-com-ubuntu-server-jammy"
    sku       = "22_04-lts-gen2"
    version   = "latest"
  }
  nullable = false

  validation {
    condition     = alltrue([for part in values(var.image) : part != ""])
    error_message = "image has an empty part: give publisher, offer, sku and version, as in 'az vm image list'."
  }
}

variable "ssh_user" {
  description = "User that is made on the nodes for the key."
  type        = string
  default     = "ubuntu"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]{0,31}$", var.ssh_user)) && !contains(["root", "admin", "administrator"], var.ssh_user)
    error_message = "ssh_user is '${var.ssh_user}', which Azure does not make: give a lower-case name other than root and admin."
  }
}

variable "monitor_instance_type" {
  description = "Size of the monitoring machine."
  type        = string
  default     = "Standard_D2s_v5"
  nullable    = false

  validation {
    condition     = can(regex("^Standard_", var.monitor_instance_type))
    error_message = "monitor_instance_type is '${var.monitor_instance_type}', which is no size of Azure: give one such as Standard_D2s_v5."
  }
}

variable "accelerated_networking" {
  description = "Whether the nodes' interfaces bypass the host's switch; the nodes' size must know it."
  type        = bool
  default     = true
  nullable    = false
}

variable "encryption_at_host" {
  description = "Whether the host encrypts the machines' disks and caches; the feature Microsoft.Compute/EncryptionAtHost must be registered."
  type        = bool
  default     = true
  nullable    = false
}

variable "keep_checkpoints_days" {
  description = "After how many days a version of a checkpoint that was deleted or overwritten is gone for good."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.keep_checkpoints_days >= 1 && var.keep_checkpoints_days <= 365 && floor(var.keep_checkpoints_days) == var.keep_checkpoints_days
    error_message = "keep_checkpoints_days is ${var.keep_checkpoints_days}: give a whole number from 1 to 365."
  }
}

variable "destroy_checkpoints" {
  description = "Whether terraform destroy deletes the storage account with the checkpoints in it; without it, it stops there."
  type        = bool
  default     = false
  nullable    = false
}
