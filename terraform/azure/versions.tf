terraform {
  required_version = ">= 1.9"

  required_providers {
    azurerm = {
      source  = "hashicorp/azurerm"
      version = "~> 4.0"
    }
  }
}

provider "azurerm" {
  # The storage account takes no keys, so the provider must not use them either.
  storage_use_azuread = true

  features {}
}
