package idemsql_test

import (
	"context"
	"errors"
	"testing"

	"github.com/idem-go/idem/adapters/idemsql"
	"github.com/idem-go/idem/idemhttp"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// silent keeps GORM's own log out of the tests' output.
var silent = logger.Default.LogMode(logger.Silent)

// order is a model of GORM's.
type order struct {
	ID     int64 `gorm:"primaryKey"`
	Amount int64
}

func (order) TableName() string { return "orders" }

func TestGORM_modelsTransactionsAndSavepointsCommitWithTheAnswer(t *testing.T) {
	db := idemsql.Open()
	t.Cleanup(func() { _ = db.Close() })
	shared := orm(t, db)
	for name, open := range map[string]func(ctx context.Context) (*gorm.DB, error){
		"on Open": func(ctx context.Context) (*gorm.DB, error) { return shared.WithContext(ctx), nil },
		"on Tx": func(ctx context.Context) (*gorm.DB, error) {
			tx, err := idemsql.Tx(ctx)
			if err != nil {
				return nil, err
			}
			return orm(t, tx).WithContext(ctx), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
				g, err := open(ctx)
				if err != nil {
					return err
				}
				return models(g)
			})
			r.want(r.send("k", "a"), 201, "")
			if got := r.send("k", "a"); got.status != 201 || !got.replayed {
				t.Errorf("the repeat got %+v", got)
			}
			r.wantCounts(3, 1)
		})
	}
}

// models leaves orders of 1, 20 and 4.
func models(g *gorm.DB) error {
	first, second := order{Amount: 1}, order{Amount: 2}
	if err := errors.Join(g.Create(&first).Error, g.Create(&second).Error); err != nil {
		return err
	}
	if first.ID == 0 || second.ID == first.ID {
		return errors.New("Create did not return the ids")
	}
	if err := g.Model(&second).Update("amount", 20).Error; err != nil {
		return err
	}
	err := g.Transaction(func(outer *gorm.DB) error {
		inner := outer.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&order{Amount: 3}).Error, errOwn)
		})
		if !errors.Is(inner, errOwn) {
			return inner
		}
		outer.SavePoint("mine")
		if err := outer.Create(&order{Amount: 5}).Error; err != nil {
			return err
		}
		if err := outer.RollbackTo("mine").Error; err != nil {
			return err
		}
		return outer.Create(&order{Amount: 4}).Error
	})
	if err != nil {
		return err
	}
	var found []order
	if err := g.Where("amount > ?", 0).Order("amount").Find(&found).Error; err != nil {
		return err
	}
	if len(found) != 3 || found[0].Amount != 1 || found[1].Amount != 4 || found[2].Amount != 20 {
		return errors.Join(errors.New("Find found something else"), answer(500))
	}
	return nil
}
