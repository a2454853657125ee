// Counts the units of Go files with go/ast: reads paths, one a line; writes "path" and then "path TAB kind" for each.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	paths := bufio.NewScanner(os.Stdin)
	for paths.Scan() {
		path := paths.Text()
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		fmt.Fprintln(out, path)
		ast.Inspect(file, func(node ast.Node) bool {
			if kind := kindOf(node); kind != "" {
				fmt.Fprintf(out, "%s\t%s\n", path, kind)
			}
			return true
		})
	}
}

func kindOf(node ast.Node) string {
	switch node := node.(type) {
	case *ast.FuncDecl:
		switch {
		case node.Body == nil:
			return ""
		case node.Recv != nil:
			return "method"
		}
		return "function"
	case *ast.TypeSpec:
		if node.Assign.IsValid() {
			return ""
		}
		switch node.Type.(type) {
		case *ast.StructType:
			return "struct"
		case *ast.InterfaceType:
			return "interface"
		}
	}
	return ""
}
