import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandFailure, type Io } from './command.ts'

const LONGEST_LINE = 4096
/** bcrypt ignores further bytes. */
const MAX_BYTES = 72
const SHORT = 8

/** Prompts twice without echo on a terminal; otherwise reads the first line of standard input. */
export async function readNewPassword(io: Io): Promise<string> {
  const password = io.stdin.isTTY ? await askTwice(io) : await firstLine(io.stdin)
  if (password === '') throw new CommandFailure('Cannot use password: it is empty')
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw new CommandFailure(
      `Cannot use password: it is longer than ${MAX_BYTES} bytes, the most that bcrypt reads`,
    )
  }
  if (password.includes('\0')) throw new CommandFailure('Cannot use password: it contains a NUL character')
  return password
}

export function warnIfShort(password: string, io: Io): void {
  if ([...password].length < SHORT)
    io.stderr.write(`Password is easy to guess: use at least ${SHORT} characters\n`)
}

async function askTwice(io: Io): Promise<string> {
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: io.stdin, output: unseen, terminal: true, historySize: 0 })
  lines.once('SIGINT', () => lines.close())
  // One reader for both prompts, so that type-ahead is not lost.
  const typed = lines[Symbol.asyncIterator]()
  try {
    const password = await ask('Password: ', typed, io)
    if ((await ask('Password again: ', typed, io)) === password) return password
    throw new CommandFailure('Cannot use password: the two entries differ')
  } finally {
    lines.close()
  }
}

async function ask(prompt: string, typed: AsyncIterator<string>, io: Io): Promise<string> {
  io.stderr.write(prompt)
  const answer = await typed.next()
  io.stderr.write('\n')
  if (answer.done) throw new CommandFailure('Cannot read password: canceled')
  return answer.value
}

async function firstLine(input: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    length += bytes.length
    if (bytes.includes('\n') || length > LONGEST_LINE) break
  }
  return (Buffer.concat(chunks).toString('utf8').split('\n')[0] ?? '').replace(/\r$/, '')
}
