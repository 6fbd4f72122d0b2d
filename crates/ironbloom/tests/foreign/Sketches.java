// Writes DataSketches filters, and their answers. See README.md.
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.function.*;
import org.apache.datasketches.filters.bloomfilter.*;

public class Sketches {
    static final int INSERTED = 1000, ASKED = 100_000;
    static final String[] TAILS = {"", "é", "ab", "漢字", "x€"};

    static String text(int i) { return i + TAILS[i % 5]; }
    static long number(int i) { return i * 0x9E3779B97F4A7C15L; }

    static void save(String name, BloomFilter filter, IntPredicate contains) throws Exception {
        Files.write(Path.of(name + ".bin"), filter.toByteArray());
        byte[] answers = new byte[(ASKED + 7) / 8];
        int found = 0;
        for (int i = 0; i < ASKED; i++) if (contains.test(i)) { answers[i / 8] |= 1 << (i % 8); found++; }
        Files.write(Path.of(name + ".answers"), answers);
        System.out.println(name + ": " + found + " of " + ASKED + " found, k " + filter.getNumHashes() + ", bits " + filter.getCapacity());
    }

    static BloomFilter create() {
        return BloomFilterBuilder.createByAccuracy(INSERTED, 0.03, 9001);
    }

    public static void main(String[] args) throws Exception {
        BloomFilter text = create();
        for (int i = 0; i < INSERTED; i++) text.update(text(i));
        text.update("");
        save("datasketches-text", text, i -> text.query(text(i)));
        System.out.println("empty: " + text.query(""));
        BloomFilter number = create();
        for (int i = 0; i < INSERTED; i++) number.update(number(i));
        save("datasketches-long", number, i -> number.query(number(i)));
        BloomFilter real = create();
        for (int i = 0; i < INSERTED; i++) real.update(i / 8.0);
        real.update(-0.0); 
        save("datasketches-double", real, i -> real.query(i / 8.0));
        Files.write(Path.of("datasketches-empty.bin"), create().toByteArray());
    }
}
