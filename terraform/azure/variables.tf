# Written by terraform/generate.py from terraform/modules/azure, where each variable is checked.

variable "region" {
  description = "Region of Azure, as in 'az account list-locations'."
  type        = string
  default     = "westus3"
  nullable    = false
}

variable "zone" {
  description = "Availability zone of the nodes (1, 2 or 3); empty leaves the choice to Azure."
  type        = string
  default     = ""
  nullable    = false
}

variable "capacity" {
  description = "How the nodes are bought: on-demand or spot."
  type        = string
  default     = "on-demand"
  nullable    = false
}

variable "spot_max_price" {
  description = "The most to pay for a node per hour, in USD, with capacity = spot; null for the price on demand."
  type        = number
  default     = null
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
}

variable "ssh_user" {
  description = "User that is made on the nodes for the key."
  type        = string
  default     = "ubuntu"
  nullable    = false
}

variable "monitor_instance_type" {
  description = "Size of the monitoring machine."
  type        = string
  default     = "Standard_D2s_v5"
  nullable    = false
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
}

variable "destroy_checkpoints" {
  description = "Whether terraform destroy deletes the storage account with the checkpoints in it; without it, it stops there."
  type        = bool
  default     = false
  nullable    = false
}
