package redlockotel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"

	"github.com/quorumlock/redlock/redlock"
)

func TestServerAttributes(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.1:6379":               "server.address=10.0.0.1,server.port=6379",
		"redis-a.example.com:6379":    "server.address=redis-a.example.com,server.port=6379",
		"[2001:db8::1]:6379":          "server.address=2001:db8::1,server.port=6379",
		"/run/redis/redis.sock":       "server.address=/run/redis/redis.sock",
		"10.0.0.1:6379 (2)":           "server.address=10.0.0.1:6379 (2)",
		"sentinel-managed master":     "server.address=sentinel-managed master",
		"sentinel-managed master (2)": "server.address=sentinel-managed master (2)",
		"cluster a:6379":              "server.address=cluster a:6379",
		"cluster a:6379,b:6379":       `server.address=cluster a:6379\,b:6379`,
		"10.0.0.1:redis":              "server.address=10.0.0.1:redis",
		"10.0.0.1:66000":              "server.address=10.0.0.1:66000",
		"":                            "server.address=",
	} {
		set := attribute.NewSet(serverAttributes(addr)...)
		assert.Equal(t, want, set.Encoded(attribute.DefaultEncoder()), addr)
	}
}

// A quarantine has the node's address, as votes have it, unless the node is a Cluster.
func TestQuarantinedAddr(t *testing.T) {
	for want, q := range map[string]redlock.Quarantine{
		"10.0.0.1:6379":               {Addr: "10.0.0.1:6379", Server: "10.0.0.1:6379"},
		"sentinel-managed master (2)": {Addr: "sentinel-managed master (2)", Server: "sentinel-managed master"},
		"10.0.0.9:6379":               {Addr: "cluster 10.0.0.1:6379", Server: "10.0.0.9:6379"},
	} {
		assert.Equal(t, want, quarantinedAddr(q))
	}
}
