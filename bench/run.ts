/** `npm run bench [name …]`: every measurement, one after the other, each in a process of its own. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const wanted = process.argv.slice(2)
const names = readdirSync(import.meta.dirname)
  .filter(file => file.endsWith('.ts') && file !== 'run.ts')
  .map(file => file.slice(0, -'.ts'.length))
  .filter(name => wanted.length === 0 || wanted.includes(name))

const missed = names.filter(name => {
  process.stdout.write(`\n# ${name}\n`)
  return (
    spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], { stdio: 'inherit' }).status !== 0
  )
})
if (missed.length > 0) process.stdout.write(`\nBelow their limit: ${missed.join(', ')}\n`)
process.exitCode = missed.length > 0 ? 1 : 0
