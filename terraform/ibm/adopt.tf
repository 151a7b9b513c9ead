# What a run that was killed made and did not write down is taken into the state: IBM takes most names once, so that the
# next run could not make it again. Who calls Terraform by hand needs none of this.

variable "adopt" {
  description = "Ids of things that exist and are not in the state, by their address in the module, such as ibm_is_vpc.cluster[0]; gaudi3-deploy looks for them and fills this in."
  type        = map(string)
  default     = {}
  nullable    = false
}

locals {
  adopted_own_key    = var.ssh_key_name == "" && length(var.ssh_key_ids) == 0
  adopted_own_subnet = var.subnet_id == ""
  # By block and key, where a block makes several.
  adopted = {
    for address, id in var.adopt : address => {
      block = split("[", address)[0]
      key   = try(split("\"", address)[1], "")
      index = try(tonumber(trimsuffix(split("[", address)[1], "]")), 0)
      id    = id
    }
  }
}

import {
  for_each = toset(var.vpc_id == "" && local.adopted_own_subnet ? compact([lookup(var.adopt, "ibm_is_vpc.cluster[0]", "")]) : [])
  to       = module.cluster.ibm_is_vpc.cluster[0]
  id       = each.value
}

import {
  for_each = toset(local.adopted_own_subnet ? compact([lookup(var.adopt, "ibm_is_vpc_address_prefix.cluster[0]", "")]) : [])
  to       = module.cluster.ibm_is_vpc_address_prefix.cluster[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && local.adopted_own_subnet ? compact([lookup(var.adopt, "ibm_is_public_gateway.cluster[0]", "")]) : [])
  to       = module.cluster.ibm_is_public_gateway.cluster[0]
  id       = each.value
}

import {
  for_each = toset(local.adopted_own_subnet ? compact([lookup(var.adopt, "ibm_is_subnet.nodes[0]", "")]) : [])
  to       = module.cluster.ibm_is_subnet.nodes[0]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : tostring(found.index) => found if found.block == "ibm_is_subnet.data" && local.adopted_own_subnet && found.index < var.network_interfaces - 1 }
  to       = module.cluster.ibm_is_subnet.data[each.value.index]
  id       = each.value.id
}

import {
  for_each = toset(compact([lookup(var.adopt, "ibm_is_security_group.nodes", "")]))
  to       = module.cluster.ibm_is_security_group.nodes
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "ibm_is_security_group.monitor[0]", "")]) : [])
  to       = module.cluster.ibm_is_security_group.monitor[0]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "ibm_is_security_group_rule.self" && contains(["inbound", "outbound"], found.key) }
  to       = module.cluster.ibm_is_security_group_rule.self[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "ibm_is_security_group_rule.outbound" && var.internet && contains(["http", "https", "dns", "ntp"], found.key) }
  to       = module.cluster.ibm_is_security_group_rule.outbound[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "ibm_is_security_group_rule.services" && contains(["161.26.0.0/16", "166.8.0.0/14"], found.key) }
  to       = module.cluster.ibm_is_security_group_rule.services[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "ibm_is_security_group_rule.inbound" && contains(var.allowed_cidrs, try(split(" ", found.key)[1], "")) && (startswith(found.key, "22 ") || !var.dedicated_monitor) }
  to       = module.cluster.ibm_is_security_group_rule.inbound[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "ibm_is_security_group_rule.monitor" && var.dedicated_monitor && contains(var.allowed_cidrs, try(split(" ", found.key)[1], "")) }
  to       = module.cluster.ibm_is_security_group_rule.monitor[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "ibm_is_instance.node" }
  to       = module.cluster.ibm_is_instance.node[each.key]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "ibm_is_instance.monitor[0]", "")]) : [])
  to       = module.cluster.ibm_is_instance.monitor[0]
  id       = each.value
}

import {
  for_each = toset(var.public_entry == "monitor" ? compact([lookup(var.adopt, "ibm_is_floating_ip.entry[0]", "")]) : [])
  to       = module.cluster.ibm_is_floating_ip.entry[0]
  id       = each.value
}

import {
  for_each = toset(local.adopted_own_key ? compact([lookup(var.adopt, "ibm_is_ssh_key.cluster[0]", "")]) : [])
  to       = module.cluster.ibm_is_ssh_key.cluster[0]
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "ibm_resource_instance.storage", "")]))
  to       = module.cluster.ibm_resource_instance.storage
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "ibm_cos_bucket.checkpoints", "")]))
  to       = module.cluster.ibm_cos_bucket.checkpoints
  id       = each.value
}

import {
  for_each = toset(var.flow_logs ? compact([lookup(var.adopt, "ibm_cos_bucket.flow[0]", "")]) : [])
  to       = module.cluster.ibm_cos_bucket.flow[0]
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "ibm_iam_trusted_profile.node", "")]))
  to       = module.cluster.ibm_iam_trusted_profile.node
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "ibm_iam_trusted_profile_policy.checkpoints", "")]))
  to       = module.cluster.ibm_iam_trusted_profile_policy.checkpoints
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "ibm_iam_custom_role.prune", "")]))
  to       = module.cluster.ibm_iam_custom_role.prune
  id       = each.value
}

import {
  for_each = toset(var.checkpoint_credentials == "hmac" ? compact([lookup(var.adopt, "ibm_iam_service_id.checkpoints[0]", "")]) : [])
  to       = module.cluster.ibm_iam_service_id.checkpoints[0]
  id       = each.value
}

import {
  for_each = toset(var.checkpoint_credentials == "hmac" ? compact([lookup(var.adopt, "ibm_iam_service_policy.checkpoints[0]", "")]) : [])
  to       = module.cluster.ibm_iam_service_policy.checkpoints[0]
  id       = each.value
}

import {
  for_each = toset(var.checkpoint_credentials == "hmac" ? compact([lookup(var.adopt, "ibm_resource_key.checkpoints[0]", "")]) : [])
  to       = module.cluster.ibm_resource_key.checkpoints[0]
  id       = each.value
}

import {
  for_each = toset(var.flow_logs ? compact([lookup(var.adopt, "ibm_iam_authorization_policy.flow[0]", "")]) : [])
  to       = module.cluster.ibm_iam_authorization_policy.flow[0]
  id       = each.value
}

import {
  for_each = toset(var.flow_logs ? compact([lookup(var.adopt, "ibm_is_flow_log.cluster[0]", "")]) : [])
  to       = module.cluster.ibm_is_flow_log.cluster[0]
  id       = each.value
}
