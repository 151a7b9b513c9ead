# Machines have private addresses only and reach out through a NAT gateway.

resource "azurerm_virtual_network" "cluster" {
  name                = var.name
  location            = azurerm_resource_group.cluster.location
  resource_group_name = azurerm_resource_group.cluster.name
  address_space       = [module.cluster.network_cidr]
  tags                = local.tags
}

resource "azurerm_subnet" "nodes" {
  name                            = "nodes"
  resource_group_name             = azurerm_resource_group.cluster.name
  virtual_network_name            = azurerm_virtual_network.cluster.name
  address_prefixes                = [module.cluster.node_subnet_cidr]
  default_outbound_access_enabled = false
  service_endpoints               = ["Microsoft.Storage"]
}

resource "azurerm_public_ip" "nat" {
  name                = "${var.name}-nat"
  location            = azurerm_resource_group.cluster.location
  resource_group_name = azurerm_resource_group.cluster.name
  allocation_method   = "Static"
  sku                 = "Standard"
  tags                = local.tags
}

resource "azurerm_nat_gateway" "cluster" {
  name                = var.name
  location            = azurerm_resource_group.cluster.location
  resource_group_name = azurerm_resource_group.cluster.name
  sku_name            = "Standard"
  tags                = local.tags
}

resource "azurerm_nat_gateway_public_ip_association" "cluster" {
  nat_gateway_id       = azurerm_nat_gateway.cluster.id
  public_ip_address_id = azurerm_public_ip.nat.id
}

resource "azurerm_subnet_nat_gateway_association" "nodes" {
  subnet_id      = azurerm_subnet.nodes.id
  nat_gateway_id = azurerm_nat_gateway.cluster.id
}

# Azure's own rules let the whole virtual network in and end with a denial of everything else.
resource "azurerm_network_security_group" "nodes" {
  name                = "${var.name}-nodes"
  location            = azurerm_resource_group.cluster.location
  resource_group_name = azurerm_resource_group.cluster.name
  tags                = local.tags
}

resource "azurerm_network_security_rule" "admitted" {
  count = length(module.cluster.allowed_cidrs) > 0 ? 1 : 0

  name                        = "admitted"
  resource_group_name         = azurerm_resource_group.cluster.name
  network_security_group_name = azurerm_network_security_group.nodes.name
  description                 = "SSH and the monitoring pages, for allowed_cidrs"
  priority                    = 200
  direction                   = "Inbound"
  access                      = "Allow"
  protocol                    = "Tcp"
  source_address_prefixes     = module.cluster.allowed_cidrs
  source_port_range           = "*"
  destination_address_prefix  = module.cluster.node_subnet_cidr
  destination_port_ranges     = ["22", "3000", "9090", "9093", "9109"]
}

resource "azurerm_subnet_network_security_group_association" "nodes" {
  subnet_id                 = azurerm_subnet.nodes.id
  network_security_group_id = azurerm_network_security_group.nodes.id
}
