// Writes bits-and-blooms and DCSO filters, and their answers. See README.md.
package main

import (
	"bytes"
	"fmt"
	"os"

	dcso "github.com/DCSO/bloom"
	"github.com/bits-and-blooms/bloom"
)

const inserted, asked = 1000, 100000

var tails = []string{"", "é", "ab", "漢字", "x€"}

func text(i int) []byte { return []byte(fmt.Sprintf("%d%s", i, tails[i%5])) }

func save(name string, data []byte, contains func([]byte) bool) {
	answers := make([]byte, (asked+7)/8)
	found := 0
	for i := 0; i < asked; i++ {
		if contains(text(i)) {
			answers[i/8] |= 1 << (i % 8)
			found++
		}
	}
	os.WriteFile(name+".bin", data, 0644)
	os.WriteFile(name+".answers", answers, 0644)
	fmt.Println(name, found, "of", asked, "found,", len(data), "bytes")
}

func main() {
	one := bloom.NewWithEstimates(inserted, 0.03)
	for i := 0; i < inserted; i++ {
		one.Add(text(i))
	}
	var out bytes.Buffer
	one.WriteTo(&out)
	save("bits-and-blooms", out.Bytes(), one.Test)

	two := dcso.Initialize(inserted, 0.03)
	for i := 0; i < inserted; i++ {
		two.Add(text(i))
	}
	two.Data = []byte("golden data")
	out.Reset()
	two.Write(&out)
	save("dcso", out.Bytes(), two.Check)
}
