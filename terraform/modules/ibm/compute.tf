resource "ibm_is_ssh_key" "cluster" {
  name           = var.name
  public_key     = module.cluster.ssh_public_key
  resource_group = local.group
  tags           = local.tags
}

resource "ibm_is_instance" "node" {
  for_each = module.cluster.nodes

  name                           = each.key
  profile                        = module.cluster.instance_type
  image                          = data.ibm_is_image.node.id
  vpc                            = ibm_is_vpc.cluster.id
  zone                           = local.zone
  keys                           = [ibm_is_ssh_key.cluster.id]
  resource_group                 = local.group
  tags                           = local.tags
  user_data                      = module.cluster.user_data
  default_trusted_profile_target = ibm_iam_trusted_profile.node.id

  boot_volume {
    name       = "${each.key}-boot"
    encryption = var.encryption_key_crn
    size       = min(module.cluster.root_volume_gb, 250)
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
      subnet          = ibm_is_subnet.nodes.id
      security_groups = [ibm_is_security_group.nodes.id]
      auto_delete     = true
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
    ignore_changes = [image, user_data]
  }

  depends_on = [terraform_data.intent, ibm_is_security_group_rule.self, ibm_is_security_group_rule.outbound]
}

resource "ibm_is_instance" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  name           = module.cluster.monitor_name
  profile        = var.monitor_instance_type
  image          = data.ibm_is_image.node.id
  vpc            = ibm_is_vpc.cluster.id
  zone           = local.zone
  keys           = [ibm_is_ssh_key.cluster.id]
  resource_group = local.group
  tags           = local.tags

  boot_volume {
    name       = "${module.cluster.monitor_name}-boot"
    encryption = var.encryption_key_crn
    size       = min(module.cluster.root_volume_gb, 250)
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
      subnet          = ibm_is_subnet.nodes.id
      security_groups = [ibm_is_security_group.nodes.id]
      auto_delete     = true
    }
  }

  lifecycle {
    ignore_changes = [image]
  }

  depends_on = [terraform_data.intent, ibm_is_security_group_rule.self]
}
