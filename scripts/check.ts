/** `npm run check`: every check there is, the quick ones first. All of them run; it fails when one does. */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { IS_THOROUGH } from '../test/support/thorough.ts'

const ROOT = resolve(import.meta.dirname, '..')

/** Name, command and arguments. The tests come last, so that their counts are the last line. */
const CHECKS: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ['lint', 'biome', 'check', '--error-on-warnings', '.'],
  ['types', 'tsc', '-p', '.'],
  ['modules', 'node', 'scripts/check-modules.ts'],
  ['docs', 'node', 'scripts/check-docs.ts'],
  ['public types', 'node', 'scripts/api-report.ts'],
  ['licences', 'node', 'scripts/check-licences.ts'],
  ['unused', 'knip', '--no-config-hints'],
  ...(IS_THOROUGH ? [['package', 'node', 'scripts/test-package.ts', '--short'] as const] : []),
  ['tests', 'npm', 'test', '--silent'],
]

function passes([name, command, ...args]: (typeof CHECKS)[number]): boolean {
  process.stdout.write(`\n> ${name}\n`)
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' })
  if (error) process.stderr.write(`Cannot run ${command}: ${error.message}\n`)
  return status === 0
}

const failed = CHECKS.filter(check => !passes(check)).map(([name]) => name)
if (failed.length > 0) {
  process.stderr.write(`Failed: ${failed.join(', ')}\n`)
  process.exitCode = 1
}
