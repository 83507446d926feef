// Package idemsql gives guarded handlers that are written for database/sql, or
// for a library on top of it such as GORM, the guard's own transaction: what they
// write there commits together with the answer, or not at all.
//
// A handler that works with a *sql.Tx asks for it:
//
//	tx, err := idemsql.Tx(r.Context())
//
// A program that works with a *sql.DB, or hands one to GORM, makes one that runs
// each statement in the transaction of the handler that its context belongs to:
//
//	db := idemsql.Open()
//	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{DisableAutomaticPing: true})
//	// in a handler: orm.WithContext(r.Context()).Create(&order)
//
// There BeginTx opens a savepoint, so that existing code which begins and commits
// its own transactions keeps working within the guard's.
//
// Arguments and results are converted as by pgx's own driver for database/sql;
// types that a program has registered on its connections count for arguments only.
// Statements go through idem.Tx, so the guard sees which of them fail. Like
// idem.Tx, none of this is for several goroutines of one handler at once, and rows
// have to be closed before the next statement.
package idemsql
