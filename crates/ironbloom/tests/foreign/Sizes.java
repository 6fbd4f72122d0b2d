// Prints how Guava and Spark size filters. See README.md.
import com.google.common.hash.*;
import java.io.*;

public class Sizes {
    static int word(byte[] b, int at) { return (b[at] & 255) << 24 | (b[at + 1] & 255) << 16 | (b[at + 2] & 255) << 8 | (b[at + 3] & 255); }
    public static void main(String[] args) throws Exception {
        for (long n : new long[] {1, 2, 10, 77, 1000, 12345, 100000, 1234567})
            for (double p : new double[] {0.5, 0.3, 0.1, 0.03, 0.01, 0.001, 1e-6}) {
                var out = new ByteArrayOutputStream();
                BloomFilter.create(Funnels.longFunnel(), n, p).writeTo(out);
                byte[] g = out.toByteArray();
                out = new ByteArrayOutputStream();
                org.apache.spark.util.sketch.BloomFilter.create(n, p).writeTo(out);
                byte[] s = out.toByteArray();
                System.out.println(n + " " + p + " " + word(g, 2) + " " + g[1] + " " + (s.length - 16) / 8 + " " + word(s, 4) + " " + word(s, 0));
            }
    }
}
