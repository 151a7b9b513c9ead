resource "azurerm_proximity_placement_group" "cluster" {
  name                = var.name
  location            = azurerm_resource_group.cluster.location
  resource_group_name = azurerm_resource_group.cluster.name
  tags                = local.tags
}

resource "azurerm_network_interface" "host" {
  for_each = toset(local.hosts)

  name                           = each.key
  location                       = azurerm_resource_group.cluster.location
  resource_group_name            = azurerm_resource_group.cluster.name
  accelerated_networking_enabled = var.accelerated_networking && each.key != module.cluster.monitor_name
  tags                           = local.tags

  ip_configuration {
    name                          = "private"
    subnet_id                     = azurerm_subnet.nodes.id
    private_ip_address_allocation = "Dynamic"
  }
}

resource "azurerm_linux_virtual_machine" "host" {
  #checkov:skip=CKV_AZURE_179:no agent of Azure is needed, the cluster brings its own exporters
  for_each = toset(local.hosts)

  name                            = each.key
  location                        = azurerm_resource_group.cluster.location
  resource_group_name             = azurerm_resource_group.cluster.name
  size                            = each.key == module.cluster.monitor_name ? var.monitor_instance_type : module.cluster.instance_type
  zone                            = var.zone == "" ? null : var.zone
  network_interface_ids           = [azurerm_network_interface.host[each.key].id]
  proximity_placement_group_id    = each.key == module.cluster.monitor_name ? null : azurerm_proximity_placement_group.cluster.id
  admin_username                  = var.ssh_user
  disable_password_authentication = true
  allow_extension_operations      = false
  encryption_at_host_enabled      = var.encryption_at_host
  custom_data                     = each.key == module.cluster.monitor_name ? null : base64encode(module.cluster.user_data)
  priority                        = var.capacity == "spot" && each.key != module.cluster.monitor_name ? "Spot" : "Regular"
  eviction_policy                 = var.capacity == "spot" && each.key != module.cluster.monitor_name ? "Delete" : null
  max_bid_price                   = var.capacity == "spot" && each.key != module.cluster.monitor_name ? coalesce(var.spot_max_price, -1) : null
  tags                            = local.tags

  admin_ssh_key {
    username   = var.ssh_user
    public_key = module.cluster.ssh_public_key
  }

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Premium_LRS"
    disk_size_gb         = module.cluster.root_volume_gb
  }

  source_image_reference {
    publisher = var.image.publisher
    offer     = var.image.offer
    sku       = var.image.sku
    version   = var.image.version
  }

  # The monitoring machine has no business with checkpoints.
  dynamic "identity" {
    for_each = each.key == module.cluster.monitor_name ? [] : [azurerm_user_assigned_identity.node.id]

    content {
      type         = "UserAssigned"
      identity_ids = [identity.value]
    }
  }

  lifecycle {
    # A newer image is no reason to replace a running node.
    ignore_changes = [source_image_reference, custom_data]
  }

  depends_on = [
    terraform_data.intent,
    azurerm_subnet_nat_gateway_association.nodes,
    azurerm_subnet_network_security_group_association.nodes,
  ]
}
