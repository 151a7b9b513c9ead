# Where checkpoints outlive the nodes: versioned, encrypted, TLS only, reached by the machines' identity and no key.

resource "azurerm_storage_account" "checkpoints" {
  #checkov:skip=CKV_AZURE_33:there are no queues
  #checkov:skip=CKV_AZURE_206:a copy in a second region doubles the cost of data that lives for days
  #checkov:skip=CKV2_AZURE_1:Microsoft's key encrypts; a key of yours is set on the account by whoever keeps it
  #checkov:skip=CKV2_AZURE_21:reads of checkpoints are not logged
  #checkov:skip=CKV_AZURE_43:the name is computed, of 24 lower-case letters and digits, which the check cannot work out
  #checkov:skip=CKV_AZURE_59:the network rules deny everything but the nodes' subnet; its service endpoint needs this
  #checkov:skip=CKV2_AZURE_33:the subnet's service endpoint and the network rules do what a private endpoint would
  name                            = substr("${replace(var.name, "-", "")}${sha1(azurerm_resource_group.cluster.id)}", 0, 24)
  location                        = azurerm_resource_group.cluster.location
  resource_group_name             = azurerm_resource_group.cluster.name
  account_tier                    = "Standard"
  account_replication_type        = "ZRS"
  min_tls_version                 = "TLS1_2"
  https_traffic_only_enabled      = true
  allow_nested_items_to_be_public = false
  shared_access_key_enabled       = false
  local_user_enabled              = false
  public_network_access_enabled   = true
  tags                            = local.tags

  blob_properties {
    versioning_enabled = true

    delete_retention_policy {
      days = var.keep_checkpoints_days
    }

    container_delete_retention_policy {
      days = var.keep_checkpoints_days
    }
  }

  network_rules {
    default_action             = "Deny"
    bypass                     = ["AzureServices"]
    virtual_network_subnet_ids = [azurerm_subnet.nodes.id]
  }

  sas_policy {
    expiration_period = "01.00:00:00"
  }
}

resource "azurerm_storage_container" "checkpoints" {
  #checkov:skip=CKV2_AZURE_21:reads of checkpoints are not logged
  name                  = "checkpoints"
  storage_account_id    = azurerm_storage_account.checkpoints.id
  container_access_type = "private"
}

resource "azurerm_storage_management_policy" "checkpoints" {
  storage_account_id = azurerm_storage_account.checkpoints.id

  rule {
    name    = "forget"
    enabled = true

    filters {
      blob_types = ["blockBlob"]
    }

    actions {
      version {
        delete_after_days_since_creation = var.keep_checkpoints_days
      }
    }
  }
}

resource "azurerm_user_assigned_identity" "node" {
  name                = "${var.name}-node"
  location            = azurerm_resource_group.cluster.location
  resource_group_name = azurerm_resource_group.cluster.name
  tags                = local.tags
}

resource "azurerm_role_assignment" "checkpoints" {
  scope                = azurerm_storage_container.checkpoints.id
  role_definition_name = "Storage Blob Data Contributor"
  principal_id         = azurerm_user_assigned_identity.node.principal_id
}

# Azure deletes a storage account with all that is in it, and has no argument that forbids it. This is destroyed
# ahead of the account when everything is, and stops there.
resource "terraform_data" "checkpoints" {
  input = var.destroy_checkpoints

  provisioner "local-exec" {
    when    = destroy
    command = self.output ? "exit 0" : "echo 'The storage account with the checkpoints stays: apply destroy_checkpoints = true first if you mean to delete it with all that is in it.' >&2; exit 1"
  }

  depends_on = [
    azurerm_storage_account.checkpoints,
    azurerm_storage_container.checkpoints,
    azurerm_storage_management_policy.checkpoints,
  ]
}
