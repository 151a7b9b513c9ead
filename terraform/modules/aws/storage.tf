# Where checkpoints outlive the nodes: versioned, encrypted, over TLS only.

resource "aws_kms_key" "cluster" {
  count = local.own_key ? 1 : 0

  description             = "Checkpoints and logs of the cluster ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 7
  tags                    = local.tags

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Account"
        Effect    = "Allow"
        Principal = { AWS = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:root" }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        Sid       = "Logs"
        Effect    = "Allow"
        Principal = { Service = "logs.${var.region}.amazonaws.com" }
        Action    = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"]
        Resource  = "*"
        Condition = { ArnLike = { "kms:EncryptionContext:aws:logs:arn" = "arn:${data.aws_partition.current.partition}:logs:${var.region}:${data.aws_caller_identity.current.account_id}:log-group:/gaudi3/${var.name}/*" } }
      },
    ]
  })
}

resource "aws_kms_alias" "cluster" {
  count = local.own_key ? 1 : 0

  name_prefix   = "alias/gaudi3-${var.name}-"
  target_key_id = aws_kms_key.cluster[0].key_id
}

resource "aws_s3_bucket" "checkpoints" {
  count = local.own_bucket ? 1 : 0

  #checkov:skip=CKV_AWS_18:access log where access_log_bucket names a place for it, see aws_s3_bucket_logging
  #checkov:skip=CKV_AWS_144:a copy in a second region doubles the cost of data that lives for days; peers keep copies
  #checkov:skip=CKV2_AWS_62:nothing reacts to new checkpoints
  bucket_prefix = "${var.name}-checkpoints-"
  force_destroy = var.destroy_checkpoints
  tags          = local.tags

  # The bucket goes first when all is destroyed: AWS refuses that while anything is in it, and the key that its objects
  # are encrypted with stays.
  depends_on = [aws_kms_key.cluster, aws_kms_alias.cluster]
}

resource "aws_s3_bucket_public_access_block" "checkpoints" {
  count = local.own_bucket ? 1 : 0

  bucket                  = aws_s3_bucket.checkpoints[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_versioning" "checkpoints" {
  count = local.own_bucket ? 1 : 0

  bucket = aws_s3_bucket.checkpoints[0].id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "checkpoints" {
  count = local.own_bucket ? 1 : 0

  bucket = aws_s3_bucket.checkpoints[0].id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.key_arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "checkpoints" {
  count = local.own_bucket ? 1 : 0

  bucket = aws_s3_bucket.checkpoints[0].id

  rule {
    id     = "forget"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = var.keep_checkpoints_days
    }

    expiration {
      expired_object_delete_marker = true
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 2
    }
  }

  depends_on = [aws_s3_bucket_versioning.checkpoints]
}

resource "aws_s3_bucket_policy" "checkpoints" {
  count = local.own_bucket ? 1 : 0

  bucket = aws_s3_bucket.checkpoints[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.checkpoints[0].arn, "${aws_s3_bucket.checkpoints[0].arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.checkpoints]
}

resource "aws_s3_bucket_logging" "checkpoints" {
  count = var.access_log_bucket == "" || !local.own_bucket ? 0 : 1

  bucket        = aws_s3_bucket.checkpoints[0].id
  target_bucket = var.access_log_bucket
  target_prefix = "${aws_s3_bucket.checkpoints[0].id}/"
}
