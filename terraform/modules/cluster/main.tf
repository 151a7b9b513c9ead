# What is the same on every cloud: the catalogue, the count and the names of nodes, and how a node sets itself up.

locals {
  catalogue = jsondecode(file("${path.module}/../../catalogue/instances.json")).types
  types = merge(local.catalogue, {
    for name, type in var.extra_instance_types : name => merge(type, { refused = null, withdrawn = null, prices = [], note = null, seen = null, source_date = null })
  })
  # A type that the catalogue no longer has is no reason to keep machines.
  gone = {
    cloud      = var.cloud, accelerator = "unknown", gaudi_generation = null, cards = 1, network_cards = 1, efa_interfaces = 0
    nvme_count = 0, nvme_gb = 0, cluster_network = false, regions = [], prices = [], refused = null, withdrawn = null
  }
  type  = try(merge(local.types, { "" = local.gone })[var.teardown && try(local.types[var.instance_type].refused, "") != null ? "" : var.instance_type], null)
  cards = try(local.type.refused, null) == null ? try(local.type.cards, 0) : 0

  gaudi_types = [for name, type in local.types : name if type.cloud == var.cloud && try(type.gaudi_generation, null) != null && try(type.withdrawn, null) == null]
  offer       = length(local.gaudi_types) > 0 ? "use ${join(" or ", local.gaudi_types)}" : "use terraform/ibm, as ${var.cloud} is not known to offer a machine with Gaudi"

  price      = one([for price in try(local.type.prices, []) : price if price.market == "on-demand" && price.region == var.region])
  node_price = var.node_usd_per_hour == null ? try(local.price.usd_per_hour, null) : var.node_usd_per_hour

  # In seconds; 0 for never.
  units   = { m = 60, h = 3600, d = 86400 }
  seconds = { for name, text in { ttl = var.ttl, idle = var.idle_shutdown } : name => try(tonumber(substr(text, 0, length(text) - 1)) * local.units[substr(text, -1, 1)], 0) }

  # Floor, so that what a refused size leaves behind is a count and no second error.
  node_count = floor(var.cluster_size / max(local.cards, 1))
  node_names = [for index in range(local.node_count) : format("%s-%02d", var.name, index + 1)]
}
