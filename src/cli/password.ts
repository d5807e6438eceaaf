import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandFailure, type Io } from './command.ts'

const LONGEST_LINE = 4096
/** BCrypt reads no further; what comes after would not count. */
const MAX_BYTES = 72
const SHORT = 8

/** A new password: asked for twice, unseen, on a terminal; else the first line of standard input. */
export async function readNewPassword(io: Io): Promise<string> {
  const password = io.stdin.isTTY ? await askTwice(io) : await firstLine(io.stdin)
  if (password === '') throw new CommandFailure('Cannot use password: it is empty')
  if (Buffer.byteLength(password) > MAX_BYTES) {
    throw new CommandFailure(
      `Cannot use password: it is longer than ${MAX_BYTES} bytes, and bcrypt reads no further`,
    )
  }
  if (password.includes('\0')) throw new CommandFailure('Cannot use password: it has a NUL character')
  return password
}

/** A short password is taken, and easily guessed: whoever set it is told so. */
export function warnIfShort(password: string, io: Io): void {
  if ([...password].length < SHORT)
    io.stderr.write(`Password is easily guessed: use ${SHORT} characters or more\n`)
}

/** Asks without echo. The editing keys of the terminal work; Ctrl-C and Ctrl-D give up. */
async function askTwice(io: Io): Promise<string> {
  const unseen = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: io.stdin, output: unseen, terminal: true, historySize: 0 })
  lines.once('SIGINT', () => lines.close())
  // One reader for both: what is typed ahead must not get lost between two.
  const typed = lines[Symbol.asyncIterator]()
  try {
    const password = await ask('Password: ', typed, io)
    if ((await ask('Password again: ', typed, io)) === password) return password
    throw new CommandFailure('Cannot use password: the two are not the same')
  } finally {
    lines.close()
  }
}

async function ask(prompt: string, typed: AsyncIterator<string>, io: Io): Promise<string> {
  io.stderr.write(prompt)
  const answer = await typed.next()
  io.stderr.write('\n')
  if (answer.done) throw new CommandFailure('Cannot read password: given up')
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
