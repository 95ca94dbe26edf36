import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import java.util.concurrent.Executors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
    private static final long TOLERANCE_SECONDS = 300;
    private static final int MAX_BODY_BYTES = 256 * 1024;

    /** Returns whether one of the signatures matches the body. {@code secret} is the signing secret, "whsec_…". */
    static boolean verify(String secret, Headers headers, byte[] body) throws GeneralSecurityException {
        String id = headers.getFirst("webhook-id");
        String timestamp = headers.getFirst("webhook-timestamp");
        String signatures = headers.getFirst("webhook-signature");
        if (id == null || signatures == null || timestamp == null || !timestamp.matches("\\d{1,12}")) return false;
        if (Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > TOLERANCE_SECONDS) return false;
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(Base64.getDecoder().decode(secret.replaceFirst("^whsec_", "")), "HmacSHA256"));
        mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
        String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        for (String each : signatures.split(" ")) {
            // Compares the values in constant time.
            if (MessageDigest.isEqual(each.getBytes(StandardCharsets.UTF_8), expected.getBytes(StandardCharsets.UTF_8))) {
                return true;
            }
        }
        return false;
    }

    static int statusOf(Headers headers, byte[] body) {
        if (body.length > MAX_BODY_BYTES) return 413;
        try {
            // Verify the raw bytes before you parse the body.
            // Store the headers webhook-id and webhook-replay of verified requests to detect duplicates.
            return verify(System.getenv("SIGNING_SECRET"), headers, body) ? 204 : 401;
        } catch (GeneralSecurityException e) {
            return 500;
        }
    }

    public static void main(String[] arguments) throws IOException {
        if (System.getenv("SIGNING_SECRET") == null) throw new IllegalStateException("set SIGNING_SECRET");
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "9900"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES + 1);
            exchange.sendResponseHeaders(statusOf(exchange.getRequestHeaders(), body), -1);
            exchange.close();
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.out.println("listening");
    }
}
