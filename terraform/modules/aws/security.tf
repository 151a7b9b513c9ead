# Who may talk to whom. EFA needs a rule to and from the group itself: a rule to everywhere is not enough for it.

locals {
  # Grafana, Prometheus, Alertmanager and the page of gaudi3-watch, all with TLS and a password.
  pages    = { grafana = 3000, prometheus = 9090, alertmanager = 9093, watch = 9109 }
  watching = var.dedicated_monitor ? { ssh = 22 } : merge({ ssh = 22 }, local.pages)

  # Without a machine of its own, monitoring is on the first node.
  admitted = {
    for pair in setproduct(keys(local.watching), module.cluster.allowed_cidrs) : "${pair[0]} ${pair[1]}" => {
      name = pair[0]
      port = local.watching[pair[0]]
      cidr = pair[1]
    }
  }
  admitted_to_monitor = {
    for pair in setproduct(var.dedicated_monitor ? keys(merge({ ssh = 22 }, local.pages)) : [], module.cluster.allowed_cidrs) : "${pair[0]} ${pair[1]}" => {
      name = pair[0]
      port = merge({ ssh = 22 }, local.pages)[pair[0]]
      cidr = pair[1]
    }
  }
  web = var.internet ? merge([
    for cidr in var.egress_cidrs : {
      for name, port in { http = 80, https = 443 } : cidr == "0.0.0.0/0" ? name : "${name} ${cidr}" => { name = name, port = port, cidr = cidr }
    }
  ]...) : {}
}

resource "aws_security_group" "nodes" {
  name_prefix = "${var.name}-nodes-"
  description = "Nodes of the cluster ${var.name}"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-nodes" })

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "self" {
  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
  description                  = "Everything from the cluster itself, EFA included"
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "self" {
  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
  description                  = "Everything to the cluster itself, EFA included"
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "web" {
  for_each = local.web

  security_group_id = aws_security_group.nodes.id
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  description       = "Packages and models (${each.value.name})"
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "s3" {
  security_group_id = aws_security_group.nodes.id
  prefix_list_id    = local.s3_prefixes
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  description       = "S3 through the gateway endpoint"
  tags              = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "admitted" {
  for_each = local.admitted

  security_group_id = aws_security_group.nodes.id
  cidr_ipv4         = strcontains(each.value.cidr, ":") ? null : each.value.cidr
  cidr_ipv6         = strcontains(each.value.cidr, ":") ? each.value.cidr : null
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  description       = "Admitted by allowed_cidrs (${each.value.name})"
  tags              = local.tags
}

# The monitoring machine has a group of its own: its pages are open to allowed_cidrs on it alone. Between it and the
# nodes everything is admitted, as it reads their exporters and ssh may go through it.
resource "aws_security_group" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  name_prefix = "${var.name}-monitor-"
  description = "Monitoring machine of the cluster ${var.name}"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-monitor" })

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "monitor" {
  for_each = { for group in aws_security_group.monitor : "all" => group.id }

  security_group_id            = each.value
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
  description                  = "Everything from the nodes"
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "monitor" {
  for_each = { for group in aws_security_group.monitor : "all" => group.id }

  security_group_id            = each.value
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
  description                  = "Everything to the nodes"
  tags                         = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "from_monitor" {
  for_each = { for group in aws_security_group.monitor : "all" => group.id }

  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = each.value
  ip_protocol                  = "-1"
  description                  = "Everything from the monitoring machine"
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "to_monitor" {
  for_each = { for group in aws_security_group.monitor : "all" => group.id }

  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = each.value
  ip_protocol                  = "-1"
  description                  = "Everything to the monitoring machine"
  tags                         = local.tags
}

resource "aws_vpc_security_group_egress_rule" "monitor_web" {
  for_each = var.dedicated_monitor ? local.web : {}

  security_group_id = aws_security_group.monitor[0].id
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  description       = "Packages (${each.value.name})"
  tags              = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "admitted_to_monitor" {
  for_each = local.admitted_to_monitor

  security_group_id = aws_security_group.monitor[0].id
  cidr_ipv4         = strcontains(each.value.cidr, ":") ? null : each.value.cidr
  cidr_ipv6         = strcontains(each.value.cidr, ":") ? each.value.cidr : null
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  description       = "Admitted by allowed_cidrs (${each.value.name})"
  tags              = local.tags
}
