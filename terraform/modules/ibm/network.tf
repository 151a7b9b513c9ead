resource "ibm_is_vpc" "cluster" {
  name                      = var.name
  address_prefix_management = "manual"
  resource_group            = local.group
  tags                      = local.tags
}

resource "ibm_is_vpc_address_prefix" "cluster" {
  name = var.name
  vpc  = ibm_is_vpc.cluster.id
  zone = local.zone
  cidr = module.cluster.network_cidr
}

resource "ibm_is_public_gateway" "cluster" {
  count = var.internet ? 1 : 0

  name           = var.name
  vpc            = ibm_is_vpc.cluster.id
  zone           = local.zone
  resource_group = local.group
  tags           = local.tags
}

resource "ibm_is_subnet" "nodes" {
  name            = "${var.name}-nodes"
  vpc             = ibm_is_vpc.cluster.id
  zone            = local.zone
  ipv4_cidr_block = module.cluster.node_subnet_cidr
  public_gateway  = one(ibm_is_public_gateway.cluster[*].id)
  resource_group  = local.group
  tags            = local.tags

  depends_on = [ibm_is_vpc_address_prefix.cluster]
}

resource "ibm_is_security_group" "nodes" {
  name           = "${var.name}-nodes"
  vpc            = ibm_is_vpc.cluster.id
  resource_group = local.group
  tags           = local.tags
}

# Everything among the nodes themselves: no protocol means TCP, UDP and ICMP.
resource "ibm_is_security_group_rule" "self" {
  for_each = toset(["inbound", "outbound"])

  group     = ibm_is_security_group.nodes.id
  direction = each.key
  remote    = ibm_is_security_group.nodes.id
}

locals {
  # Out: packages, names, time. In: SSH, and the monitoring pages, all three with TLS and a password.
  outbound = var.internet ? { http = ["tcp", 80], https = ["tcp", 443], dns = ["udp", 53], ntp = ["udp", 123] } : {}
  inbound = {
    for pair in setproduct([22, 3000, 9090, 9093], module.cluster.allowed_cidrs) : "${pair[0]} ${pair[1]}" => { port = pair[0], cidr = pair[1] }
  }
}

resource "ibm_is_security_group_rule" "outbound" {
  for_each = local.outbound

  group     = ibm_is_security_group.nodes.id
  direction = "outbound"
  remote    = "0.0.0.0/0"
  protocol  = each.value[0]
  port_min  = each.value[1]
  port_max  = each.value[1]
}

# IBM's services inside the cloud: object storage, mirrors, metadata.
resource "ibm_is_security_group_rule" "services" {
  for_each = toset(["161.26.0.0/16", "166.8.0.0/14"])

  group     = ibm_is_security_group.nodes.id
  direction = "outbound"
  remote    = each.key
}

resource "ibm_is_security_group_rule" "inbound" {
  for_each = local.inbound

  group     = ibm_is_security_group.nodes.id
  direction = "inbound"
  remote    = each.value.cidr
  protocol  = "tcp"
  port_min  = each.value.port
  port_max  = each.value.port
}

# For types that can be in one; Gaudi 3 is not among them (see the variable).
resource "ibm_is_cluster_network" "cluster" {
  count = var.cluster_network_profile == null ? 0 : 1

  name           = var.name
  profile        = var.cluster_network_profile
  resource_group = local.group
  zone           = local.zone

  subnet_prefixes {
    cidr = "10.0.0.0/9"
  }

  vpc {
    id = ibm_is_vpc.cluster.id
  }
}

resource "ibm_is_cluster_network_subnet" "cluster" {
  count = var.cluster_network_profile == null ? 0 : var.cluster_network_subnets

  cluster_network_id       = ibm_is_cluster_network.cluster[0].id
  name                     = "${var.name}-${count.index}"
  total_ipv4_address_count = 4096
}
