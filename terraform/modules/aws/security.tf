# Who may talk to whom. EFA needs a rule to and from the group itself: a rule to everywhere is not enough for it.

locals {
  # SSH; Grafana, Prometheus and Alertmanager, all three with TLS and a password.
  admitted_ports = { ssh = 22, grafana = 3000, prometheus = 9090, alertmanager = 9093 }
  admitted = {
    for pair in setproduct(keys(local.admitted_ports), module.cluster.allowed_cidrs) : "${pair[0]} ${pair[1]}" => {
      name = pair[0]
      port = local.admitted_ports[pair[0]]
      cidr = pair[1]
    }
  }
}

resource "aws_security_group" "nodes" {
  name_prefix = "${var.name}-nodes-"
  description = "Nodes of the cluster ${var.name}"
  vpc_id      = aws_vpc.cluster.id
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
  for_each = var.internet ? { http = 80, https = 443 } : {}

  security_group_id = aws_security_group.nodes.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = each.value
  to_port           = each.value
  description       = "Packages and models (${each.key})"
  tags              = local.tags
}

resource "aws_vpc_security_group_egress_rule" "s3" {
  security_group_id = aws_security_group.nodes.id
  prefix_list_id    = aws_vpc_endpoint.s3.prefix_list_id
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
