truncate receipts restart identity
