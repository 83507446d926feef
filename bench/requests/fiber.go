package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

// serveFiberMemory keeps answers in the process: they are lost with it, and
// another process does not see them.
func serveFiberMemory(ln net.Listener, pool *pgxpool.Pool, _ string) error {
	return serveFiber(ln, pool, idempotency.Config{})
}

// serveFiberRedis keeps answers in Redis. The lock of a key is still the
// middleware's own, within the process.
func serveFiberRedis(ln net.Listener, pool *pgxpool.Pool, addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
	defer client.Close()
	return serveFiber(ln, pool, idempotency.Config{Storage: redisStorage{client}})
}

func serveFiber(ln net.Listener, pool *pgxpool.Pool, config idempotency.Config) error {
	config.KeyHeader = "Idempotency-Key"
	app := fiber.New()
	app.Use(idempotency.New(config))
	app.Post("/orders", func(c fiber.Ctx) error {
		made, err := orderInTx(context.Background(), pool, c.Body())
		if err != nil {
			return c.Status(http.StatusInternalServerError).SendString(err.Error())
		}
		c.Set("Content-Type", "application/json")
		return c.Status(http.StatusCreated).Send(made)
	})
	return app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true})
}

// redisStorage is fiber.Storage over Redis.
type redisStorage struct{ client *redis.Client }

func (s redisStorage) GetWithContext(ctx context.Context, key string) ([]byte, error) {
	value, err := s.client.Get(ctx, key).Bytes()
	if err == redis.Nil {
		return nil, nil
	}
	return value, err
}

func (s redisStorage) SetWithContext(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return s.client.Set(ctx, key, value, ttl).Err()
}

func (s redisStorage) DeleteWithContext(ctx context.Context, key string) error {
	return s.client.Del(ctx, key).Err()
}

func (s redisStorage) ResetWithContext(ctx context.Context) error {
	return s.client.FlushDB(ctx).Err()
}

func (s redisStorage) Get(key string) ([]byte, error) {
	return s.GetWithContext(context.Background(), key)
}

func (s redisStorage) Set(key string, value []byte, ttl time.Duration) error {
	return s.SetWithContext(context.Background(), key, value, ttl)
}

func (s redisStorage) Delete(key string) error {
	return s.DeleteWithContext(context.Background(), key)
}

func (s redisStorage) Reset() error { return s.ResetWithContext(context.Background()) }

func (s redisStorage) Close() error { return s.client.Close() }
