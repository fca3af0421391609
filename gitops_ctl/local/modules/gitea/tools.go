//go:build tools

package tools

import _ "code.gitea.io/gitea"
