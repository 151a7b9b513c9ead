# What a run that was killed made and did not write down is taken into the state instead of made a second time: a second
# key, a second machine that is paid for, a second subnet that AWS refuses. Who calls Terraform by hand needs none of this.

variable "adopt" {
  description = "Ids of things that exist and are not in the state, by their address in the module, such as aws_kms_key.cluster; gaudi3-deploy looks for them and fills this in."
  type        = map(string)
  default     = {}
  nullable    = false
}

locals {
  adopted_markets = var.capacity != "spot" ? [var.capacity] : concat(
    var.autoscaling ? ["on-demand"] : ["spot"], var.on_demand_nodes > 0 ? ["on-demand"] : []
  )
  # By block and key, where a block makes several.
  adopted = {
    for address, id in var.adopt : address => {
      block = split("[", address)[0]
      key   = try(split("\"", address)[1], "")
      id    = id
    }
  }
}

import {
  for_each = toset(var.kms_key_arn == "" ? compact([lookup(var.adopt, "aws_kms_key.cluster", "")]) : [])
  to       = module.cluster.aws_kms_key.cluster[0]
  id       = each.value
}

import {
  for_each = toset(var.kms_key_arn == "" ? compact([lookup(var.adopt, "aws_kms_alias.cluster", "")]) : [])
  to       = module.cluster.aws_kms_alias.cluster[0]
  id       = each.value
}

import {
  for_each = toset(var.existing_bucket == "" ? compact([lookup(var.adopt, "aws_s3_bucket.checkpoints", "")]) : [])
  to       = module.cluster.aws_s3_bucket.checkpoints[0]
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_placement_group.cluster", "")]))
  to       = module.cluster.aws_placement_group.cluster
  id       = each.value
}

import {
  for_each = toset(var.subnet_id == "" ? compact([lookup(var.adopt, "aws_vpc.cluster", "")]) : [])
  to       = module.cluster.aws_vpc.cluster[0]
  id       = each.value
}

import {
  for_each = toset(var.subnet_id == "" ? compact([lookup(var.adopt, "aws_subnet.nodes", "")]) : [])
  to       = module.cluster.aws_subnet.nodes[0]
  id       = each.value
}

import {
  for_each = toset(var.subnet_id == "" ? compact([lookup(var.adopt, "aws_route_table.nodes", "")]) : [])
  to       = module.cluster.aws_route_table.nodes[0]
  id       = each.value
}

import {
  for_each = toset(var.subnet_id == "" ? compact([lookup(var.adopt, "aws_route_table_association.nodes", "")]) : [])
  to       = module.cluster.aws_route_table_association.nodes[0]
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_security_group.nodes", "")]))
  to       = module.cluster.aws_security_group.nodes
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_vpc_security_group_ingress_rule.self", "")]))
  to       = module.cluster.aws_vpc_security_group_ingress_rule.self
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_vpc_security_group_egress_rule.self", "")]))
  to       = module.cluster.aws_vpc_security_group_egress_rule.self
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_vpc_security_group_egress_rule.s3", "")]))
  to       = module.cluster.aws_vpc_security_group_egress_rule.s3
  id       = each.value
}

import {
  for_each = toset(var.subnet_id == "" ? compact([lookup(var.adopt, "aws_vpc_endpoint.s3", "")]) : [])
  to       = module.cluster.aws_vpc_endpoint.s3[0]
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_cloudwatch_log_group.flow", "")]))
  to       = module.cluster.aws_cloudwatch_log_group.flow
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_flow_log.cluster", "")]))
  to       = module.cluster.aws_flow_log.cluster
  id       = each.value
}

import {
  for_each = toset(var.node_role_name == "" ? compact([lookup(var.adopt, "aws_iam_role.node", "")]) : [])
  to       = module.cluster.aws_iam_role.node[0]
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_iam_role.flow", "")]))
  to       = module.cluster.aws_iam_role.flow
  id       = each.value
}

import {
  for_each = toset(var.node_role_name == "" ? compact([lookup(var.adopt, "aws_iam_role_policy.checkpoints", "")]) : [])
  to       = module.cluster.aws_iam_role_policy.checkpoints[0]
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_iam_role_policy.flow", "")]))
  to       = module.cluster.aws_iam_role_policy.flow
  id       = each.value
}

import {
  for_each = toset(compact([lookup(var.adopt, "aws_iam_instance_profile.node", "")]))
  to       = module.cluster.aws_iam_instance_profile.node
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_subnet.gateway[0]", "")]) : [])
  to       = module.cluster.aws_subnet.gateway[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_internet_gateway.cluster[0]", "")]) : [])
  to       = module.cluster.aws_internet_gateway.cluster[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_route_table.gateway[0]", "")]) : [])
  to       = module.cluster.aws_route_table.gateway[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_route.gateway[0]", "")]) : [])
  to       = module.cluster.aws_route.gateway[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_route_table_association.gateway[0]", "")]) : [])
  to       = module.cluster.aws_route_table_association.gateway[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_eip.nat[0]", "")]) : [])
  to       = module.cluster.aws_eip.nat[0]
  id       = each.value
}

import {
  for_each = toset(var.public_entry == "monitor" ? compact([lookup(var.adopt, "aws_eip.entry[0]", "")]) : [])
  to       = module.cluster.aws_eip.entry[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_nat_gateway.cluster[0]", "")]) : [])
  to       = module.cluster.aws_nat_gateway.cluster[0]
  id       = each.value
}

import {
  for_each = toset(var.internet && var.subnet_id == "" ? compact([lookup(var.adopt, "aws_route.nodes[0]", "")]) : [])
  to       = module.cluster.aws_route.nodes[0]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_iam_role.monitor[0]", "")]) : [])
  to       = module.cluster.aws_iam_role.monitor[0]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_iam_instance_profile.monitor[0]", "")]) : [])
  to       = module.cluster.aws_iam_instance_profile.monitor[0]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_instance.monitor[0]", "")]) : [])
  to       = module.cluster.aws_instance.monitor[0]
  id       = each.value
}

import {
  for_each = toset(var.autoscaling ? compact([lookup(var.adopt, "aws_autoscaling_group.nodes[0]", "")]) : [])
  to       = module.cluster.aws_autoscaling_group.nodes[0]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_instance.node" && !var.autoscaling }
  to       = module.cluster.aws_instance.node[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_launch_template.node" && contains(local.adopted_markets, found.key) }
  to       = module.cluster.aws_launch_template.node[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_vpc_endpoint.interface" && !var.internet && var.subnet_id == "" && contains(["ssm", "ssmmessages", "ec2messages", "kms"], found.key) }
  to       = module.cluster.aws_vpc_endpoint.interface[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_vpc_security_group_egress_rule.web" && var.internet && contains(var.egress_cidrs, "0.0.0.0/0") && contains(["http", "https"], found.key) }
  to       = module.cluster.aws_vpc_security_group_egress_rule.web[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_vpc_security_group_ingress_rule.admitted" && contains(var.allowed_cidrs, try(split(" ", found.key)[1], "")) && (startswith(found.key, "ssh ") || !var.dedicated_monitor) }
  to       = module.cluster.aws_vpc_security_group_ingress_rule.admitted[each.key]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_security_group.monitor[0]", "")]) : [])
  to       = module.cluster.aws_security_group.monitor[0]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_vpc_security_group_ingress_rule.monitor[\"all\"]", "")]) : [])
  to       = module.cluster.aws_vpc_security_group_ingress_rule.monitor["all"]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_vpc_security_group_egress_rule.monitor[\"all\"]", "")]) : [])
  to       = module.cluster.aws_vpc_security_group_egress_rule.monitor["all"]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_vpc_security_group_ingress_rule.from_monitor[\"all\"]", "")]) : [])
  to       = module.cluster.aws_vpc_security_group_ingress_rule.from_monitor["all"]
  id       = each.value
}

import {
  for_each = toset(var.dedicated_monitor ? compact([lookup(var.adopt, "aws_vpc_security_group_egress_rule.to_monitor[\"all\"]", "")]) : [])
  to       = module.cluster.aws_vpc_security_group_egress_rule.to_monitor["all"]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_vpc_security_group_egress_rule.monitor_web" && var.internet && var.dedicated_monitor && contains(var.egress_cidrs, "0.0.0.0/0") && contains(["http", "https"], found.key) }
  to       = module.cluster.aws_vpc_security_group_egress_rule.monitor_web[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_vpc_security_group_ingress_rule.admitted_to_monitor" && var.dedicated_monitor && contains(var.allowed_cidrs, try(split(" ", found.key)[1], "")) }
  to       = module.cluster.aws_vpc_security_group_ingress_rule.admitted_to_monitor[each.key]
  id       = each.value
}

import {
  for_each = { for found in values(local.adopted) : found.key => found.id if found.block == "aws_iam_role_policy.session" && var.connection == "ssm" && (found.key == "node" ? var.node_role_name == "" : var.dedicated_monitor) }
  to       = module.cluster.aws_iam_role_policy.session[each.key]
  id       = each.value
}
