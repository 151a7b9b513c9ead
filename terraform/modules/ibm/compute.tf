resource "ibm_is_instance" "node" {
  for_each = module.cluster.nodes

  name                           = each.key
  profile                        = module.cluster.instance_type
  image                          = try(local.image.id, null)
  vpc                            = local.vpc
  zone                           = local.zone
  keys                           = local.key_ids
  resource_group                 = local.group
  tags                           = local.tags
  user_data                      = module.cluster.user_data
  default_trusted_profile_target = ibm_iam_trusted_profile.node.id

  boot_volume {
    name       = "${each.key}-boot"
    encryption = var.encryption_key_crn
    size       = module.cluster.root_volume_gb
  }

  # Tokens only, over TLS, and not from a container's network.
  metadata_service {
    enabled            = true
    protocol           = "https"
    response_hop_limit = 1
  }

  primary_network_attachment {
    name = "${each.key}-vpc"

    virtual_network_interface {
      name            = "${each.key}-vpc"
      subnet          = local.subnet
      security_groups = [ibm_is_security_group.nodes.id]
      auto_delete     = true
    }
  }

  dynamic "network_attachments" {
    for_each = range(1, var.network_interfaces)

    content {
      name = "${each.key}-data-${network_attachments.value}"

      virtual_network_interface {
        name            = "${each.key}-data-${network_attachments.value}"
        subnet          = local.own_subnet ? ibm_is_subnet.data[network_attachments.value - 1].id : var.subnet_id
        security_groups = [ibm_is_security_group.nodes.id]
        auto_delete     = true
      }
    }
  }

  dynamic "cluster_network_attachments" {
    for_each = ibm_is_cluster_network_subnet.cluster

    content {
      name = "${each.key}-cluster-${cluster_network_attachments.key}"

      cluster_network_interface {
        name = "${each.key}-cluster-${cluster_network_attachments.key}"

        subnet {
          id = cluster_network_attachments.value.cluster_network_subnet_id
        }
      }
    }
  }

  dynamic "catalog_offering" {
    for_each = var.catalog_offering == null ? [] : [var.catalog_offering]

    content {
      version_crn = catalog_offering.value.version_crn
      plan_crn    = catalog_offering.value.plan_crn
    }
  }

  dynamic "availability" {
    for_each = var.capacity == "spot" ? ["spot"] : []

    content {
      class = availability.value
    }
  }

  dynamic "reservation_affinity" {
    for_each = var.capacity == "reservation" ? [var.reservation_id] : []

    content {
      policy = "manual"

      pool {
        id = reservation_affinity.value
      }
    }
  }

  lifecycle {
    # A newer image is no reason to replace a running node.
    ignore_changes = [image, catalog_offering, user_data]
  }

  depends_on = [terraform_data.intent, ibm_is_security_group_rule.self, ibm_is_security_group_rule.outbound]
}

resource "ibm_is_instance" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  name           = module.cluster.monitor_name
  profile        = var.monitor_instance_type
  image          = try(local.image.id, null)
  vpc            = local.vpc
  zone           = local.zone
  keys           = local.key_ids
  resource_group = local.group
  tags           = local.tags
  user_data      = module.cluster.monitor_user_data

  dynamic "catalog_offering" {
    for_each = var.catalog_offering == null ? [] : [var.catalog_offering]

    content {
      version_crn = catalog_offering.value.version_crn
      plan_crn    = catalog_offering.value.plan_crn
    }
  }

  boot_volume {
    name       = "${module.cluster.monitor_name}-boot"
    encryption = var.encryption_key_crn
    size       = module.cluster.root_volume_gb
  }

  metadata_service {
    enabled            = true
    protocol           = "https"
    response_hop_limit = 1
  }

  primary_network_attachment {
    name = "${module.cluster.monitor_name}-vpc"

    virtual_network_interface {
      name            = "${module.cluster.monitor_name}-vpc"
      subnet          = local.subnet
      security_groups = [ibm_is_security_group.nodes.id, ibm_is_security_group.monitor[0].id]
      auto_delete     = true
    }
  }

  lifecycle {
    ignore_changes = [image, catalog_offering, user_data]
  }

  depends_on = [terraform_data.intent, ibm_is_security_group_rule.self]
}
