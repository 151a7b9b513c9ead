# The variables that every root and every cloud's module has: this file is the same in all of them, and a test says so.
# They are checked in modules/cluster, one sentence for each mistake.

variable "cluster_size" {
  description = "Number of accelerator cards (HPUs) in the cluster, a multiple of what one machine of instance_type has."
  type        = number
  nullable    = false
}

variable "instance_type" {
  description = "Type of the accelerator machines: one of docs/clouds/instances.md, or one of extra_instance_types."
  type        = string
  nullable    = false
}

variable "accept_other_accelerators" {
  description = "Let an instance_type pass whose accelerators are not Gaudi."
  type        = bool
  default     = false
  nullable    = false
}

variable "accept_withdrawn_type" {
  description = "Let an instance_type pass that its cloud no longer offers, for a reservation that still holds one."
  type        = bool
  default     = false
  nullable    = false
}

variable "extra_instance_types" {
  description = "Types to add to the catalogue, or to replace in it, by name: for a machine or a region that it does not have yet."
  type = map(object({
    cloud            = string
    accelerator      = string
    cards            = number
    source           = string
    gaudi_generation = optional(number)
    card_memory_gb   = optional(number)
    vcpus            = optional(number)
    memory_gib       = optional(number)
    network          = optional(string)
    nic_gbps         = optional(number)
    network_cards    = optional(number, 1)
    efa_interfaces   = optional(number, 0)
    nvme_count       = optional(number, 0)
    nvme_gb          = optional(number, 0)
    cluster_network  = optional(bool, false)
    regions          = optional(list(string), [])
  }))
  default  = {}
  nullable = false
}

variable "name" {
  description = "Name of the cluster: the nodes are called NAME-01, NAME-02 and so on."
  type        = string
  default     = "gaudi"
  nullable    = false
}

variable "tags" {
  description = "Tags (labels on GCP) of everything that is made; letters, digits, dashes and underscores pass on every cloud."
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "allowed_cidrs" {
  description = "Networks from which SSH to the nodes is admitted, and to which the monitoring pages are shown; none by default."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "ssh_public_key" {
  description = "Public key that may log in to the nodes, as in ~/.ssh/id_ed25519.pub. The private key stays with you."
  type        = string
  default     = ""
  nullable    = false
}

variable "jump_host" {
  description = "Host through which ssh reaches the nodes, as user@host; empty where they are reached directly."
  type        = string
  default     = ""
  nullable    = false
}

variable "teardown" {
  description = "Whether this is the plan that destroys everything: what was asked for is then no reason to refuse. gaudi3-deploy and provision.yml set it."
  type        = bool
  default     = false
  nullable    = false
}
