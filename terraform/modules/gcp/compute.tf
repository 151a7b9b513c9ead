resource "google_compute_resource_policy" "compact" {
  count = var.compact_placement ? 1 : 0

  name    = "${var.name}-compact"
  project = local.project
  region  = var.region

  group_placement_policy {
    collocation = "COLLOCATED"
  }
}

resource "google_compute_instance" "node" {
  #checkov:skip=CKV_GCP_34:the key comes with the machine's metadata, which OS Login would pass over
  #checkov:skip=CKV_GCP_38:disks are encrypted with Google's key, or with yours where encryption_key names it
  for_each = module.cluster.nodes

  name                      = each.key
  project                   = local.project
  zone                      = local.zone
  machine_type              = module.cluster.instance_type
  resource_policies         = google_compute_resource_policy.compact[*].self_link
  tags                      = [var.name]
  labels                    = local.labels
  allow_stopping_for_update = false

  metadata = {
    block-project-ssh-keys = "true"
    enable-oslogin         = "false"
    serial-port-enable     = "false"
    ssh-keys               = "${var.ssh_user}:${module.cluster.ssh_public_key}"
    user-data              = module.cluster.user_data
  }

  boot_disk {
    kms_key_self_link = var.encryption_key

    initialize_params {
      image = var.image
      size  = module.cluster.root_volume_gb
      type  = "pd-ssd"
    }
  }

  network_interface {
    subnetwork = google_compute_subnetwork.nodes.id
    nic_type   = "GVNIC"
  }

  dynamic "guest_accelerator" {
    for_each = var.guest_accelerator == null ? [] : [var.guest_accelerator]

    content {
      type  = guest_accelerator.value.type
      count = guest_accelerator.value.count
    }
  }

  # Machines with accelerators cannot be moved while they run.
  scheduling {
    on_host_maintenance         = "TERMINATE"
    automatic_restart           = var.capacity != "spot"
    preemptible                 = var.capacity == "spot"
    provisioning_model          = var.capacity == "spot" ? "SPOT" : "STANDARD"
    instance_termination_action = var.capacity == "spot" ? "DELETE" : null
  }

  dynamic "reservation_affinity" {
    for_each = var.capacity == "reservation" ? [var.reservation] : []

    content {
      type = "SPECIFIC_RESERVATION"

      specific_reservation {
        key    = "compute.googleapis.com/reservation-name"
        values = [reservation_affinity.value]
      }
    }
  }

  shielded_instance_config {
    enable_secure_boot          = false
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  service_account {
    email  = google_service_account.node.email
    scopes = ["https://www.googleapis.com/auth/devstorage.read_write"]
  }

  lifecycle {
    # A newer image is no reason to replace a running node.
    ignore_changes = [boot_disk[0].initialize_params[0].image, metadata["user-data"]]
  }

  depends_on = [terraform_data.intent, google_compute_router_nat.cluster, google_compute_firewall.self]
}

resource "google_compute_instance" "monitor" {
  #checkov:skip=CKV_GCP_34:the key comes with the machine's metadata, which OS Login would pass over
  #checkov:skip=CKV_GCP_38:disks are encrypted with Google's key, or with yours where encryption_key names it
  count = var.dedicated_monitor ? 1 : 0

  name         = module.cluster.monitor_name
  project      = local.project
  zone         = local.zone
  machine_type = var.monitor_instance_type
  tags         = [var.name]
  labels       = local.labels

  metadata = {
    block-project-ssh-keys = "true"
    enable-oslogin         = "false"
    serial-port-enable     = "false"
    ssh-keys               = "${var.ssh_user}:${module.cluster.ssh_public_key}"
  }

  boot_disk {
    kms_key_self_link = var.encryption_key

    initialize_params {
      image = var.image
      size  = module.cluster.root_volume_gb
      type  = "pd-balanced"
    }
  }

  network_interface {
    subnetwork = google_compute_subnetwork.nodes.id
  }

  shielded_instance_config {
    enable_secure_boot          = true
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  service_account {
    email  = google_service_account.monitor[0].email
    scopes = ["https://www.googleapis.com/auth/logging.write"]
  }

  lifecycle {
    ignore_changes = [boot_disk[0].initialize_params[0].image]
  }

  depends_on = [terraform_data.intent, google_compute_router_nat.cluster]
}
