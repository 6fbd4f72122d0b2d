// Writes Guava and Spark filters, and their answers. See README.md.
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.function.*;

public class Golden {
    static final int INSERTED = 1000, ASKED = 100_000;
    static final String[] TAILS = {"", "é", "ab", "漢字", "x€"};

    static String text(int i) { return i + TAILS[i % 5]; }
    static byte[] bytes(int i) { return text(i).getBytes(StandardCharsets.UTF_8); }
    static long number(int i) { return i * 0x9E3779B97F4A7C15L; }
    static int small(int i) { return i * 0x9E3779B1; }

    interface Write { void to(OutputStream out) throws IOException; }

    static void save(String name, Write write, IntPredicate contains) throws IOException {
        try (OutputStream out = Files.newOutputStream(Path.of(name + ".bin"))) { write.to(out); }
        byte[] answers = new byte[(ASKED + 7) / 8];
        int found = 0;
        for (int i = 0; i < ASKED; i++) if (contains.test(i)) { answers[i / 8] |= 1 << (i % 8); found++; }
        Files.write(Path.of(name + ".answers"), answers);
        System.out.println(name + ": " + found + " of " + ASKED + " found");
    }

    static <T> void guava(String name, Funnel<? super T> funnel, IntFunction<T> key, int strategy) throws Exception {
        Class<?> strategies = Class.forName("com.google.common.hash.BloomFilterStrategies");
        Object chosen = strategies.getEnumConstants()[strategy];
        var create = BloomFilter.class.getDeclaredMethod(
            "create", Funnel.class, long.class, double.class, Class.forName("com.google.common.hash.BloomFilter$Strategy"));
        create.setAccessible(true);
        @SuppressWarnings("unchecked")
        BloomFilter<T> filter = (BloomFilter<T>) create.invoke(null, funnel, (long) INSERTED, 0.03, chosen);
        for (int i = 0; i < INSERTED; i++) filter.put(key.apply(i));
        save(name, filter::writeTo, i -> filter.mightContain(key.apply(i)));
    }

    static void spark(String name, org.apache.spark.util.sketch.BloomFilter.Version version, int seed,
            BiConsumer<org.apache.spark.util.sketch.BloomFilter, Integer> put,
            BiPredicate<org.apache.spark.util.sketch.BloomFilter, Integer> contains) throws Exception {
        long bits = org.apache.spark.util.sketch.BloomFilter.optimalNumOfBits(INSERTED, 0.03);
        var filter = org.apache.spark.util.sketch.BloomFilter.create(version, INSERTED, bits, seed);
        for (int i = 0; i < INSERTED; i++) put.accept(filter, i);
        save(name, filter::writeTo, i -> contains.test(filter, i));
    }

    public static void main(String[] args) throws Exception {
        guava("guava-64-text", Funnels.stringFunnel(StandardCharsets.UTF_8), Golden::text, 1);
        guava("guava-64-chars", Funnels.unencodedCharsFunnel(), Golden::text, 1);
        guava("guava-64-long", Funnels.longFunnel(), i -> number(i), 1);
        guava("guava-64-int", Funnels.integerFunnel(), i -> small(i), 1);
        guava("guava-64-bytes", Funnels.byteArrayFunnel(), Golden::bytes, 1);
        guava("guava-32-text", Funnels.stringFunnel(StandardCharsets.UTF_8), Golden::text, 0);
        guava("guava-32-long", Funnels.longFunnel(), i -> number(i), 0);
        var V1 = org.apache.spark.util.sketch.BloomFilter.Version.V1;
        var V2 = org.apache.spark.util.sketch.BloomFilter.Version.V2;
        spark("spark-v1-long", V1, 0, (f, i) -> f.putLong(number(i)), (f, i) -> f.mightContainLong(number(i)));
        spark("spark-v1-text", V1, 0, (f, i) -> f.putString(text(i)), (f, i) -> f.mightContainString(text(i)));
        spark("spark-v2-long", V2, 0, (f, i) -> f.putLong(number(i)), (f, i) -> f.mightContainLong(number(i)));
        spark("spark-v2-text", V2, 0, (f, i) -> f.putString(text(i)), (f, i) -> f.mightContainString(text(i)));
        spark("spark-v2-seeded-binary", V2, -123456789,
            (f, i) -> f.putBinary(bytes(i)), (f, i) -> f.mightContainBinary(bytes(i)));
    }
}
