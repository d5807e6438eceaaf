import { resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

/**
 * The words before the arguments of a command. Tests start the program of this clone, or the one that `TEST_PROGRAM` names as JSON, such as
 * `["/usr/bin/env", "HOME=/tmp/home", "/tmp/prefix/bin/sallyport"]`: a test of what is shipped is the same test.
 */
export const PROGRAM: readonly string[] = readProgram(process.env.TEST_PROGRAM)

function readProgram(text: string | undefined): readonly string[] {
  return text === undefined
    ? [process.execPath, resolve(ROOT, 'src/cli/main.ts')]
    : JSON.parse(text).map(String)
}
