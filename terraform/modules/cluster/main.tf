# What is the same on every cloud: the catalogue, the count and the names of nodes, and how a node sets itself up.

locals {
  catalogue = jsondecode(file("${path.module}/../../catalogue/instances.json")).types
  types = merge(local.catalogue, {
    for name, type in var.extra_instance_types : name => merge(type, { refused = null, prices = [], note = null, seen = null })
  })
  type  = try(local.types[var.instance_type], null)
  cards = try(local.type.refused, null) == null ? try(local.type.cards, 0) : 0

  gaudi_types = [for name, type in local.types : name if type.cloud == var.cloud && try(type.gaudi_generation, null) != null]
  offer       = length(local.gaudi_types) > 0 ? "use ${join(" or ", local.gaudi_types)}" : "use terraform/ibm, as ${var.cloud} is not known to offer a machine with Gaudi"

  price      = one([for price in try(local.type.prices, []) : price if price.market == "on-demand" && price.region == var.region])
  node_price = try(local.price.usd_per_hour, null)

  # Floor, so that what a refused size leaves behind is a count and no second error.
  node_count = floor(var.cluster_size / max(local.cards, 1))
  node_names = [for index in range(local.node_count) : format("%s-%02d", var.name, index + 1)]
}
