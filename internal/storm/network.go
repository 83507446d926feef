package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
)

// weather is what the connections to the shops meet. Each is cut after a few
// requests: those that nothing happens to would be kept and used for ever.
func weather() faultproxy.Plan {
	return faultproxy.Weather{
		Refuse:  0.05,
		CutUp:   0.45,
		CutDown: 0.50,
		Within:  3_000, // bytes; a request and its answer have about 350 each
		Slow:    0.25,
		Delay:   15 * time.Millisecond,
	}.Plan()
}

// network lies between the clients and the shops. Clients reach its gateway, which
// hands each request to one of the shops, some of them to both, over connections
// that are slow and are cut.
type network struct {
	proxies [shopCount]*faultproxy.TCP
	gateway *gateway
	server  *http.Server
	url     string
	served  chan error
}

// openNetwork starts it, in bad weather and without shops.
func openNetwork(seed uint64) (n *network, err error) {
	n = &network{served: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	var to [shopCount]string
	for i := range shopCount {
		// Every new connection is refused until there is a shop.
		if n.proxies[i], err = faultproxy.NewTCP("127.0.0.1:1", seed+uint64(i), weather()); err != nil {
			return n, fmt.Errorf("storm: %w", err)
		}
		n.proxies[i].Refuse(true)
		to[i] = "http://" + n.proxies[i].Addr()
	}
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return n, fmt.Errorf("storm: listen: %w", err)
	}
	n.url, n.gateway = "http://"+ln.Addr().String(), newGateway(seed, to)
	n.server = &http.Server{Handler: n.gateway, ReadHeaderTimeout: requestLimit, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { n.served <- n.server.Serve(ln) }()
	return n, nil
}

// up lets a shop be found at addr.
func (n *network) up(i int, addr string) {
	n.proxies[i].Retarget(addr)
	n.proxies[i].Refuse(false)
}

// down refuses every new connection to a shop: its port may soon be somebody
// else's.
func (n *network) down(i int) { n.proxies[i].Refuse(true) }

// clear ends the bad weather, for the connections that there are, too.
func (n *network) clear() {
	n.gateway.calm.Store(true)
	for _, p := range n.proxies {
		p.SetPlan(nil)
		p.CutAll()
	}
}

// counts are what the network has done so far.
func (n *network) counts() (c Faults) {
	for _, p := range n.proxies {
		counts := p.Counts()
		c.Cuts += counts.Cuts
		c.Refused += counts.Refused
		c.Delays += counts.Delays
	}
	c.Repeats = n.gateway.repeated()
	return c
}

// close ends every connection and returns when nothing is left. The proxies are
// first: without them whatever the gateway waits for fails at once.
func (n *network) close() (err error) {
	for _, p := range n.proxies {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	if n.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		if n.server.Shutdown(ctx) != nil {
			err = errors.Join(err, n.server.Close())
		}
		<-n.served
		n.gateway.close()
	}
	if err != nil {
		err = fmt.Errorf("storm: the network: %w", err)
	}
	return err
}
