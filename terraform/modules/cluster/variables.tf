# What all clouds ask, and what is wrong with the answers: each check says in one sentence what was given, what is
# allowed and what to do. The roots and the modules of the clouds pass these variables on as they are.

variable "cloud" {
  description = "Cloud that the nodes are of, as the catalogue names it."
  type        = string
  nullable    = false

  validation {
    condition     = contains(["aws", "azure", "gcp", "ibm", "onprem"], var.cloud)
    error_message = "cloud is '${var.cloud}', but the modules know aws, azure, gcp, ibm and onprem: give one of these."
  }
}

variable "cluster_size" {
  description = "Number of accelerator cards (HPUs) in the cluster, a multiple of what one machine of instance_type has."
  type        = number
  nullable    = false

  validation {
    condition     = var.cluster_size >= 1 && floor(var.cluster_size) == var.cluster_size
    error_message = "cluster_size is ${var.cluster_size}, but counts accelerator cards: give a whole number from 1 on."
  }

  validation {
    condition     = var.teardown || local.cards == 0 || var.cluster_size < 1 || var.cluster_size % max(local.cards, 1) == 0
    error_message = "cluster_size is ${var.cluster_size}, but a ${var.instance_type} has ${local.cards} cards: give a multiple of ${local.cards}, such as ${max(local.cards, 1) * max(ceil(var.cluster_size / max(local.cards, 1)), 1)}."
  }
}

variable "instance_type" {
  description = "Type of the accelerator machines: one of docs/clouds/instances.md, or one of extra_instance_types."
  type        = string
  nullable    = false

  validation {
    condition     = var.teardown || contains(keys(local.types), var.instance_type)
    error_message = "instance_type is '${var.instance_type}', which the catalogue does not have: ${local.offer}, or describe yours in extra_instance_types."
  }

  validation {
    condition     = var.teardown || try(local.types[var.instance_type].refused, null) == null
    error_message = try(coalesce(local.types[var.instance_type].refused), "This instance_type is refused.")
  }

  validation {
    condition     = var.teardown || try(local.types[var.instance_type].refused, null) != null || try(local.types[var.instance_type].cloud, var.cloud) == var.cloud
    error_message = "instance_type is '${var.instance_type}', which is a type of ${try(local.types[var.instance_type].cloud, "?")}, not of ${var.cloud}: use terraform/${try(local.types[var.instance_type].cloud, "?")}, or ${local.offer}."
  }

  validation {
    condition     = var.teardown || try(local.types[var.instance_type].refused, null) != null || try(local.types[var.instance_type].gaudi_generation, 0) != null || var.accept_other_accelerators
    error_message = "instance_type is '${var.instance_type}', which has no Gaudi but ${try(local.types[var.instance_type].accelerator, "?")}: set accept_other_accelerators = true if you mean that, or ${local.offer}."
  }

  validation {
    condition     = var.teardown || var.accept_withdrawn_type || try(local.types[var.instance_type].cloud, var.cloud) != var.cloud || try(local.types[var.instance_type].withdrawn, null) == null
    error_message = "instance_type is '${var.instance_type}', which ${var.cloud} has not offered since ${try(local.types[var.instance_type].withdrawn.since, "?")} (seen ${try(local.types[var.instance_type].withdrawn.seen, "?")}): ${local.offer}, or set accept_withdrawn_type = true for a reservation that still holds it."
  }
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

  validation {
    condition     = alltrue([for type in values(var.extra_instance_types) : type.cards >= 1 && floor(type.cards) == type.cards])
    error_message = "extra_instance_types has an entry without cards (${join(", ", [for name, type in var.extra_instance_types : name if type.cards < 1 || floor(type.cards) != type.cards])}): say with a whole number from 1 on how many accelerators a machine has."
  }

  validation {
    condition     = alltrue([for type in values(var.extra_instance_types) : type.efa_interfaces <= type.network_cards])
    error_message = "extra_instance_types has an entry with more EFA interfaces than network cards (${join(", ", [for name, type in var.extra_instance_types : name if type.efa_interfaces > type.network_cards])}): give at most one EFA interface per network card."
  }
}

variable "region" {
  description = "Region of the cloud; null where the cloud has none."
  type        = string
  default     = null

  validation {
    condition     = var.teardown || var.region == null || try(local.type.refused, null) != null || length(try(local.type.regions, [])) == 0 || contains(try(local.type.regions, []), coalesce(var.region, "?"))
    error_message = "region is '${coalesce(var.region, "?")}', where ${var.instance_type} is not known to be offered: use ${join(", ", try(local.type.regions, []))}, or add the region by describing the type in extra_instance_types."
  }
}

variable "name" {
  description = "Name of the cluster: the nodes are called NAME-01, NAME-02 and so on."
  type        = string
  default     = "gaudi"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,22}[a-z0-9])?$", var.name))
    error_message = "name is '${var.name}', but becomes a host name on every cloud: give 1 to 24 lower-case letters, digits and dashes, a letter first and no dash last."
  }
}

variable "tags" {
  description = "Tags (labels on GCP) of everything that is made; letters, digits, dashes and underscores pass on every cloud."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key, value in var.tags : can(regex("^[A-Za-z][A-Za-z0-9_-]{0,62}$", key)) && can(regex("^[A-Za-z0-9 _.:/=+@-]{0,63}$", value))])
    error_message = "tags has a key or value that not every cloud takes (${join(", ", [for key, value in var.tags : key if !can(regex("^[A-Za-z][A-Za-z0-9_-]{0,62}$", key)) || !can(regex("^[A-Za-z0-9 _.:/=+@-]{0,63}$", value))])}): use letters, digits, dashes and underscores, 63 at most."
  }

  validation {
    condition     = alltrue([for key in keys(var.tags) : !contains(["name", "cluster", "managedby"], lower(key))])
    error_message = "tags has Name, Cluster or ManagedBy, which the modules set themselves: leave these out."
  }
}

variable "allowed_cidrs" {
  description = "Networks from which SSH to the nodes is admitted, and to which the monitoring pages are shown; none by default."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for cidr in var.allowed_cidrs : can(cidrhost(cidr, 0))])
    error_message = "allowed_cidrs has '${join("', '", [for cidr in var.allowed_cidrs : cidr if !can(cidrhost(cidr, 0))])}', which is not a network: write each as 198.51.100.0/24, and a single address as 198.51.100.7/32."
  }

  validation {
    condition     = alltrue([for cidr in var.allowed_cidrs : !can(cidrhost(cidr, 0)) || !can(regex("/[0-7]$", cidr))])
    error_message = "allowed_cidrs has '${join("', '", [for cidr in var.allowed_cidrs : cidr if can(regex("/[0-7]$", cidr))])}', which opens the nodes to the world: name your own networks, /8 or narrower, or leave it empty."
  }
}

variable "ssh_public_key" {
  description = "Public key that may log in to the nodes, as in ~/.ssh/id_ed25519.pub. The private key stays with you."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = !strcontains(var.ssh_public_key, "PRIVATE KEY")
    error_message = "ssh_public_key is a private key, which must not get into Terraform's state: give the .pub file beside it, and count this key as disclosed if the plan was stored."
  }

  validation {
    condition     = var.ssh_public_key == "" ? var.teardown || !var.ssh_key_required : strcontains(var.ssh_public_key, "PRIVATE KEY") || can(regex("^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\\.com) [A-Za-z0-9+/]+=* ?[^\\n]*\\s*$", var.ssh_public_key))
    error_message = var.ssh_public_key == "" ? "ssh_public_key is missing: give the public key that may log in, for example with export TF_VAR_ssh_public_key=\"$(cat ~/.ssh/id_ed25519.pub)\"." : "ssh_public_key is not one line of an OpenSSH public key (ssh-ed25519 AAAA... comment): give the content of a .pub file."
  }
}

variable "ssh_key_types" {
  description = "Kinds of keys that the cloud takes, as an OpenSSH public key begins; empty for all that OpenSSH has."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = var.ssh_public_key == "" || length(var.ssh_key_types) == 0 || strcontains(var.ssh_public_key, "PRIVATE KEY") || anytrue([for type in var.ssh_key_types : startswith(var.ssh_public_key, "${type} ")])
    error_message = "ssh_public_key is of type ${try(split(" ", var.ssh_public_key)[0], "?")}, but ${var.cloud} takes ${join(" and ", var.ssh_key_types)} only: make one with ssh-keygen -t ed25519."
  }
}

variable "ssh_key_required" {
  description = "Whether the cloud puts the key on the machines; on premises they have one already."
  type        = bool
  default     = true
  nullable    = false
}

variable "dedicated_monitor" {
  description = "Whether Prometheus, Alertmanager and Grafana get a small machine of their own; without it they share the first node."
  type        = bool
  default     = true
  nullable    = false
}

variable "nvme_mount" {
  description = "Where the local NVMe disks, joined into one striped volume, are mounted on the nodes. Their content dies with the machine."
  type        = string
  default     = "/scratch"
  nullable    = false

  validation {
    condition     = can(regex("^/[a-z0-9_-]+(/[a-z0-9_-]+)*$", var.nvme_mount)) && !contains(["/home", "/var", "/usr", "/etc", "/opt", "/root", "/boot", "/tmp"], var.nvme_mount)
    error_message = "nvme_mount is '${var.nvme_mount}', but must be a folder of its own under / in lower-case letters: leave the default /scratch or give, for example, /data/scratch."
  }
}

variable "max_hourly_usd" {
  description = "Refuse a cluster whose nodes cost more than this per hour on demand, by the catalogue's price; null for no limit."
  type        = number
  default     = null

  validation {
    condition     = var.teardown || var.max_hourly_usd == null || local.node_price != null
    error_message = "max_hourly_usd is ${coalesce(var.max_hourly_usd, 0)}, but the catalogue has no price of ${var.instance_type} in ${coalesce(var.region, "this place")}: give the price that you were quoted as node_usd_per_hour, or leave max_hourly_usd out."
  }

  validation {
    condition     = var.teardown || var.max_hourly_usd == null || local.node_price == null || try(local.node_price * local.node_count, 0) <= coalesce(var.max_hourly_usd, 0)
    error_message = "max_hourly_usd is ${coalesce(var.max_hourly_usd, 0)}, but ${local.node_count} x ${var.instance_type} cost ${format("%.2f", try(local.node_price * local.node_count, 0))} USD per hour on demand (${var.node_usd_per_hour == null ? "price seen ${try(local.price.seen, "?")}" : "node_usd_per_hour"}): ask for fewer cards or raise it."
  }
}

variable "root_volume_gb" {
  description = "Size of a node's root volume, in GB."
  type        = number
  default     = 200
  nullable    = false

  validation {
    condition     = var.root_volume_gb >= 100 && var.root_volume_gb <= 16000 && floor(var.root_volume_gb) == var.root_volume_gb
    error_message = "root_volume_gb is ${var.root_volume_gb}, but the drivers, PyTorch and logs need room: give 100 to 16000."
  }
}

variable "network_cidr" {
  description = "Private network of the cluster; it must be /16 to /22 and not overlap with networks that are peered to it."
  type        = string
  default     = "10.42.0.0/16"
  nullable    = false

  validation {
    condition     = can(cidrsubnet(var.network_cidr, 4, 1)) && can(regex("^(10\\.|172\\.(1[6-9]|2[0-9]|3[01])\\.|192\\.168\\.)[0-9.]+/(1[6-9]|2[0-2])$", var.network_cidr))
    error_message = "network_cidr is '${var.network_cidr}': give a private network (in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16) of /16 to /22, such as 10.42.0.0/16."
  }
}

variable "node_usd_per_hour" {
  description = "Price of a node per hour, in USD, as you were quoted it; null for the catalogue's."
  type        = number
  default     = null

  validation {
    condition     = var.node_usd_per_hour == null || coalesce(var.node_usd_per_hour, 0) > 0
    error_message = "node_usd_per_hour is ${coalesce(var.node_usd_per_hour, 0)}: give the price of a node per hour in USD, above 0, or leave it out."
  }
}

variable "ttl" {
  description = "How long a machine may run, such as 90m, 12h or 3d: then it powers itself off, jobs are sent SIGTERM and save. Empty for no end."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.ttl == "" || can(regex("^[1-9][0-9]{0,3}[mhd]$", var.ttl))
    error_message = "ttl is '${var.ttl}': give a number of minutes, hours or days, such as 90m, 12h or 3d, or leave it empty."
  }
}

variable "idle_shutdown" {
  description = "After how long without a process on its accelerators and without a login a node powers itself off, such as 2h; empty for never."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.idle_shutdown == "" || can(regex("^([1-9][0-9]{0,3}[hd]|([3-9][0-9]|[1-9][0-9]{2,3})m)$", var.idle_shutdown))
    error_message = "idle_shutdown is '${var.idle_shutdown}': give 30 minutes or more, such as 45m or 2h, or leave it empty."
  }
}

variable "teardown" {
  description = "Whether this is the plan that destroys everything: what was asked for is then no reason to refuse. gaudi3-deploy and provision.yml set it."
  type        = bool
  default     = false
  nullable    = false
}
