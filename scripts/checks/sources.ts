import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'

export const ROOT: string = resolve(import.meta.dirname, '../..')

/** Files that git keeps or would keep, by their path from the root. */
export function listFiles(): readonly string[] {
  const names = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  return names
    .split('\0')
    .filter(name => name !== '' && statSync(resolve(ROOT, name), { throwIfNoEntry: false })?.isFile())
}

export function readSources(files: readonly string[]): ReadonlyMap<string, string> {
  return new Map(files.map(file => [file, readFileSync(resolve(ROOT, file), 'utf8')]))
}

/** Ends a check: what is wrong and exit code 1, or a line that all is well. */
export function conclude(name: string, faults: readonly string[]): void {
  for (const fault of faults) process.stderr.write(`${fault}\n`)
  if (faults.length > 0) process.exitCode = 1
  process.stdout.write(`${name}: ${faults.length === 0 ? 'in order' : `${faults.length} faults`}\n`)
}
