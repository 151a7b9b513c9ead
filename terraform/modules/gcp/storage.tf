# Where checkpoints outlive the nodes: versioned, encrypted, reached by the machines' service account and no key.

resource "google_storage_bucket" "checkpoints" {
  #checkov:skip=CKV_GCP_62:reads of checkpoints are not logged
  name                        = "${var.name}-checkpoints-${substr(sha1(google_compute_network.cluster.self_link), 0, 12)}"
  project                     = local.project
  location                    = var.region
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = var.destroy_checkpoints
  labels                      = local.labels

  versioning {
    enabled = true
  }

  lifecycle_rule {
    condition {
      days_since_noncurrent_time = var.keep_checkpoints_days
    }

    action {
      type = "Delete"
    }
  }

  dynamic "encryption" {
    for_each = var.encryption_key == null ? [] : [var.encryption_key]

    content {
      default_kms_key_name = encryption.value
    }
  }
}

resource "google_service_account" "node" {
  account_id   = "${var.name}-node"
  project      = local.project
  display_name = "Nodes of the cluster ${var.name}"
}

resource "google_storage_bucket_iam_member" "node" {
  bucket = google_storage_bucket.checkpoints.name
  role   = "roles/storage.objectUser"
  member = "serviceAccount:${google_service_account.node.email}"
}

resource "google_service_account" "monitor" {
  count = var.dedicated_monitor ? 1 : 0

  account_id   = "${var.name}-monitor"
  project      = local.project
  display_name = "Monitoring of the cluster ${var.name}"
}
