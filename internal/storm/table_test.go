package storm_test

const wantTable = `                                         POST /orders  POST /unguarded/orders
  intents                                           2                       2
  requests                                      1,009                       9
  answered 201 Created                              8                       9
  answered 409 Conflict                             1                       0
  clients that hung up                              0                       0
  replays of a stored answer                        6                       0
  answers unlike the intent's first                 0                       6
  mismatches tried                                  1                       1
  mismatches refused                                1                       0
  orders in the database                            2                       9
  intents with more than one order                  0                       2
  double orders                                     0                       7
  rows that break an invariant                      0                       -

                                         POST /payments
  orders to be paid                                 2
  keys to pay them from                             3
  requests                                         12
  answered 201 Created                              5
  answered 402 Payment Required                     1
  answered 409 Conflict                             2
  replays of a stored answer                        4
  answers unlike the key's first                    0
  mismatches tried                                  1
  mismatches refused                                1
  effects found unknown                             1
  of them settled by the bank's record              1
  effects still unknown                             0
  charges at the bank                               2
  payments in the shop                              2
  payments charged more than once                   0
  orders paid more than once                        0
  kept by the bank, not in the ledger               0
  sum of the ledger                                 0

                                         POST /refunds
  payments to be refunded                           1
  keys to refund them from                          2
  requests                                          4
  answered 202 Accepted                             2
  answered 409 Conflict                             1
  replays of a stored answer                        1
  answers unlike the key's first                    0
  mismatches tried                                  0
  mismatches refused                                0
  refunds at the bank                               1
  refunds in the shop                               1
  payments refunded more than once                  0

                                                tasks
  receipts of the orders                            2
  tasks that are done                               3
  tasks that were taken again                       1
  tasks that are stuck                              0
  tasks that were applied twice                     0

  Bookings: 3 customers raced for 1 slot with 7 requests; 1 got one, 2 found it taken.
  Network: 1,234 connections cut, 56 refused, 7 pieces delayed, 1 request repeated.
  Killed with SIGKILL: 8 shops, 1 client process, and the bank 4 times.
  Seed 42, 1.2 s.

The proof holds: 2 intents, sent in 1,025 requests through 1,234 cut connections and 12 killed processes, made 2 orders, 2 charges, 2 receipts and 1 refund; without the guard they made 9 orders.
`
