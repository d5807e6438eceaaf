/**
 * Runs after `npm ci`, with any Node. npm 10, which comes with Node 20, installs the Node of this platform and then removes its
 * link in node_modules/.bin together with the Nodes of other platforms. This puts the link back.
 */
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const { optionalDependencies } = createRequire(import.meta.url)('../package.json')
const modules = fileURLToPath(new URL('../node_modules', import.meta.url))
const link = join(modules, '.bin/node')
const installed = Object.keys(optionalDependencies)
  .map(name => join(modules, name, 'bin/node'))
  .find(path => existsSync(path))

if (installed !== undefined && !existsSync(link)) {
  mkdirSync(dirname(link), { recursive: true })
  rmSync(link, { force: true })
  symlinkSync(relative(dirname(link), installed), link)
}
