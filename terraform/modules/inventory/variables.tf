variable "cloud" {
  description = "Cloud of the nodes."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]+$", var.cloud))
    error_message = "cloud is '${var.cloud}', but names a group in the inventory: give lower-case letters."
  }
}

variable "name" {
  description = "Name of the cluster."
  type        = string
  nullable    = false

  validation {
    condition     = var.name != ""
    error_message = "name is empty: give the cluster's name."
  }
}

variable "region" {
  description = "Region of the nodes; null where the cloud has none."
  type        = string
  default     = null

  validation {
    condition     = var.region == null || var.region != ""
    error_message = "region is empty: give a region, or null."
  }
}

variable "type" {
  description = "The catalogue's entry of the nodes' type, from the module cluster."
  type = object({
    accelerator      = string
    cards            = number
    gaudi_generation = optional(number)
  })
  nullable = false

  validation {
    condition     = var.type.cards >= 1
    error_message = "type has ${var.type.cards} cards: give an entry of the catalogue that has some."
  }
}

variable "instance_type" {
  description = "Name of the nodes' type."
  type        = string
  nullable    = false

  validation {
    condition     = var.instance_type != ""
    error_message = "instance_type is empty: give the type's name."
  }
}

variable "nodes" {
  description = "The accelerator nodes in their order; the first is where training processes meet."
  type = list(object({
    name        = string
    private_ip  = string
    public_ip   = optional(string)
    instance_id = optional(string)
    zone        = optional(string)
    market      = optional(string)
    type        = optional(string)
    connect_to  = optional(string)
    ssh_port    = optional(number)
    ssh_user    = optional(string)
    jump_host   = optional(string)
    host_key    = optional(string)
    bmc         = optional(string)
  }))
  nullable = false

  validation {
    condition     = length(var.nodes) == length(distinct(var.nodes[*].name))
    error_message = "nodes has a name twice (${join(", ", var.nodes[*].name)}): give each node a name of its own."
  }
}

variable "monitor" {
  description = "The monitoring machine; null where the first node does its work."
  type = object({
    name        = string
    private_ip  = string
    public_ip   = optional(string)
    instance_id = optional(string)
    zone        = optional(string)
    type        = optional(string)
    connect_to  = optional(string)
    ssh_port    = optional(number)
    ssh_user    = optional(string)
    jump_host   = optional(string)
    host_key    = optional(string)
    bmc         = optional(string)
  })
  default = null

  validation {
    condition     = var.monitor == null || !contains(var.nodes[*].name, try(var.monitor.name, ""))
    error_message = "monitor is called as a node is (${try(var.monitor.name, "")}): give it a name of its own."
  }
}

variable "ssh_user" {
  description = "User that Ansible logs in as."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z_][a-z0-9_-]{0,31}$", var.ssh_user))
    error_message = "ssh_user is '${var.ssh_user}', which is no user name on Linux: give the user of the image, such as ubuntu."
  }
}

variable "connection" {
  description = "How ssh gets to the nodes: direct, which may be through jump_host, or ssm for AWS Systems Manager."
  type        = string
  default     = "direct"
  nullable    = false

  validation {
    condition     = contains(["direct", "ssm"], var.connection)
    error_message = "connection is '${var.connection}': give direct or ssm."
  }
}

variable "jump_host" {
  description = "Host through which ssh reaches the nodes, as user@host; empty where they are reached directly."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.jump_host == "" || can(regex("^([a-z_][a-z0-9_-]*@)?[A-Za-z0-9.:-]+$", var.jump_host))
    error_message = "jump_host is '${var.jump_host}': give it as user@host, or leave it empty."
  }
}

variable "checkpoint_target" {
  description = "Where checkpoints can be kept, such as s3://bucket/prefix; null where there is no such place."
  type        = string
  default     = null

  validation {
    condition     = var.checkpoint_target == null || can(regex("^[a-z0-9]+://", var.checkpoint_target))
    error_message = "checkpoint_target is '${coalesce(var.checkpoint_target, "?")}': give it as scheme://place/prefix, or null."
  }
}

variable "variables" {
  description = "Further variables of Ansible for all hosts, by name."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.variables) : can(regex("^[a-z][a-z0-9_]*$", name))])
    error_message = "variables has a name that Ansible does not take (${join(", ", keys(var.variables))}): use lower-case letters, digits and underscores."
  }
}

variable "tags" {
  description = "Tags of the cluster."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.tags) : key != ""])
    error_message = "tags has an empty key: name every tag."
  }
}

variable "allowed_cidrs" {
  description = "Networks that are admitted to the nodes."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for cidr in var.allowed_cidrs : can(cidrhost(cidr, 0))])
    error_message = "allowed_cidrs has something that is not a network (${join(", ", var.allowed_cidrs)}): write each as 198.51.100.0/24."
  }
}
