locals {
  own_vpc    = var.vpc_id == "" && var.subnet_id == ""
  own_subnet = var.subnet_id == ""
  vpc        = local.own_vpc ? one(ibm_is_vpc.cluster[*].id) : local.own_subnet ? var.vpc_id : one(data.ibm_is_subnet.existing[*].vpc)
  subnet     = local.own_subnet ? one(ibm_is_subnet.nodes[*].id) : var.subnet_id
}

resource "ibm_is_vpc" "cluster" {
  count = local.own_vpc ? 1 : 0

  name                      = var.name
  address_prefix_management = "manual"
  resource_group            = local.group
  tags                      = local.tags
}

resource "ibm_is_vpc_address_prefix" "cluster" {
  count = local.own_subnet ? 1 : 0

  name = var.name
  vpc  = local.vpc
  zone = local.zone
  cidr = module.cluster.network_cidr
}

resource "ibm_is_public_gateway" "cluster" {
  count = var.internet && local.own_subnet ? 1 : 0

  name           = var.name
  vpc            = local.vpc
  zone           = local.zone
  resource_group = local.group
  tags           = local.tags
}

resource "ibm_is_subnet" "nodes" {
  count = local.own_subnet ? 1 : 0

  name            = "${var.name}-nodes"
  vpc             = local.vpc
  zone            = local.zone
  ipv4_cidr_block = module.cluster.node_subnet_cidr
  public_gateway  = one(ibm_is_public_gateway.cluster[*].id)
  resource_group  = local.group
  tags            = local.tags

  depends_on = [ibm_is_vpc_address_prefix.cluster]
}

# A node's further interfaces: two in one subnet would answer for each other.
resource "ibm_is_subnet" "data" {
  count = local.own_subnet ? var.network_interfaces - 1 : 0

  name            = "${var.name}-data-${count.index + 1}"
  vpc             = local.vpc
  zone            = local.zone
  ipv4_cidr_block = cidrsubnet(module.cluster.network_cidr, 4, count.index + 2)
  resource_group  = local.group
  tags            = local.tags

  depends_on = [ibm_is_vpc_address_prefix.cluster]
}

resource "ibm_is_security_group" "nodes" {
  name           = "${var.name}-nodes"
  vpc            = local.vpc
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
  # Out: packages, names, time. In: SSH; the monitoring pages, all with TLS and a password, on the machine that has
  # them.
  outbound      = var.internet ? { http = ["tcp", 80], https = ["tcp", 443], dns = ["udp", 53], ntp = ["udp", 123] } : {}
  pages         = [3000, 9090, 9093, 9109]
  inbound       = { for pair in setproduct(concat([22], var.dedicated_monitor ? [] : local.pages), module.cluster.allowed_cidrs) : "${pair[0]} ${pair[1]}" => { port = pair[0], cidr = pair[1] } }
  monitor_pages = { for pair in setproduct(var.dedicated_monitor ? local.pages : [], module.cluster.allowed_cidrs) : "${pair[0]} ${pair[1]}" => { port = pair[0], cidr = pair[1] } }
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

resource "ibm_is_security_group" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  name           = "${var.name}-monitor"
  vpc            = local.vpc
  resource_group = local.group
  tags           = local.tags
}

resource "ibm_is_security_group_rule" "monitor" {
  for_each = local.monitor_pages

  group     = ibm_is_security_group.monitor[0].id
  direction = "inbound"
  remote    = each.value.cidr
  protocol  = "tcp"
  port_min  = each.value.port
  port_max  = each.value.port
}

# The jump host of those who are outside: reached from allowed_cidrs alone.
resource "ibm_is_floating_ip" "entry" {
  count = var.public_entry == "monitor" ? 1 : 0

  name           = "${var.name}-entry"
  target         = ibm_is_instance.monitor[0].primary_network_attachment[0].virtual_network_interface[0].id
  resource_group = local.group
  tags           = local.tags
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
    id = local.vpc
  }
}

resource "ibm_is_cluster_network_subnet" "cluster" {
  count = var.cluster_network_profile == null ? 0 : var.cluster_network_subnets

  cluster_network_id       = ibm_is_cluster_network.cluster[0].id
  name                     = "${var.name}-${count.index}"
  total_ipv4_address_count = 4096
}
