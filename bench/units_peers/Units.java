// Counts the units of Java files with javac's own parser: reads paths, one a line; writes "path" and then
// "path TAB kind" for each.

import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreeScanner;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Locale;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

public class Units {
    public static void main(String[] arguments) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager files = compiler.getStandardFileManager(null, Locale.ROOT, null);
        BufferedReader paths = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String path; (path = paths.readLine()) != null; ) {
            DiagnosticCollector<JavaFileObject> problems = new DiagnosticCollector<>();
            JavacTask task = (JavacTask) compiler.getTask(
                    null, files, problems, List.of("-proc:none"), null, files.getJavaFileObjects(new File(path)));
            Iterable<? extends CompilationUnitTree> parsed = task.parse();
            if (problems.getDiagnostics().stream().anyMatch(found -> found.getKind() == Diagnostic.Kind.ERROR)) {
                continue;
            }
            out.append(path).append('\n');
            for (CompilationUnitTree unit : parsed) {
                new Counter(path, out).scan(unit, null);
            }
        }
        System.out.print(out);
    }

    private static final class Counter extends TreeScanner<Void, Void> {
        private final String path;
        private final StringBuilder out;

        Counter(String path, StringBuilder out) {
            this.path = path;
            this.out = out;
        }

        private void count(String kind) {
            out.append(path).append('\t').append(kind).append('\n');
        }

        @Override
        public Void visitMethod(MethodTree node, Void nothing) {
            if (node.getBody() != null) {
                count("method");
            }
            return super.visitMethod(node, nothing);
        }

        @Override
        public Void visitClass(ClassTree node, Void nothing) {
            if (node.getSimpleName().length() > 0) { // not anonymous
                switch (node.getKind()) {
                    case ENUM -> count("enum");
                    case INTERFACE, ANNOTATION_TYPE -> count("interface");
                    default -> count("class");
                }
            }
            return super.visitClass(node, nothing);
        }
    }
}
