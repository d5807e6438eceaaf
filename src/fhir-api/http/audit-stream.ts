import { type Readable, Transform, type TransformCallback } from 'node:stream'
import type { StreamRecord } from '../response.ts'

/** The longest match of the pattern, and a character after it. */
const MAX_MATCH_CHARACTERS = 1_000

/** Patients of one record. A stream may have any number. */
const PATIENTS_AT_ONCE = 5_000

/**
 * Records the patients of a response that is too long for memory while it is sent: every Patient that it contains or refers
 * to. The last part is sent when the record is stored; if it cannot be stored, the response breaks off. If the client
 * leaves, the patients of the part that was sent are recorded.
 */
export function recordPatients(
  body: Readable,
  fhirBaseUrl: string,
  record: (patients: readonly string[]) => Promise<void>,
): Readable {
  const pattern = new RegExp(
    `"(?:reference|fullUrl)"\\s*:\\s*"(?:${toPattern(fhirBaseUrl)}\\\\?/)?Patient\\\\?/([A-Za-z0-9.-]{1,64})(?:\\\\?/_history[^"]{0,80})?"`,
    'g',
  )
  const recorded = new Set<string>()
  let found = new Set<string>()
  let kept = ''

  const find = (chunk: Buffer) => {
    const text = kept + chunk.toString('latin1')
    for (const [, id = ''] of text.matchAll(pattern)) if (!recorded.has(id)) found.add(id)
    kept = text.slice(-MAX_MATCH_CHARACTERS)
  }
  const recordFound = async () => {
    const patients = [...found]
    found = new Set()
    if (patients.length === 0) return
    await record(patients)
    for (const id of patients) recorded.add(id)
  }
  const passOn = (work: Promise<void>, done: TransformCallback, chunk?: Buffer) =>
    work.then(() => done(null, chunk), done)

  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      find(chunk)
      if (found.size < PATIENTS_AT_ONCE) done(null, chunk)
      else void passOn(recordFound(), done, chunk)
    },
    flush: done => void passOn(recordFound(), done),
    destroy(error, done) {
      body.destroy()
      // The auditor reports the failure, with the record.
      recordFound().then(
        () => done(error),
        () => done(error),
      )
    },
  })
  body.on('error', error => stream.destroy(error))
  return body.pipe(stream)
}

/** JSON may write `/` as `\/`. */
function toPattern(url: string): string {
  return RegExp.escape(url).replaceAll('\\/', '\\\\?\\/')
}

/**
 * Records what a stream has sent, with its patients. The last part is sent when the record is stored; if it cannot be stored,
 * the response breaks off. If the client leaves, the part that was sent is recorded.
 */
export function recordStream(
  body: Readable,
  sent: StreamRecord,
  record: (patients: readonly string[]) => Promise<void>,
): Readable {
  const passOn = (work: Promise<void>, done: TransformCallback, chunk?: Buffer) =>
    work.then(() => done(null, chunk), done)
  let last: Buffer | undefined
  let isRecorded = false
  const recordAll = () => {
    if (isRecorded) return Promise.resolve()
    isRecorded = true
    return record(sent.takePatients())
  }
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const before = last
      last = chunk
      if (sent.waiting < PATIENTS_AT_ONCE) done(null, before)
      else void passOn(record(sent.takePatients()), done, before)
    },
    flush: done => void passOn(recordAll(), done, last),
    destroy(error, done) {
      body.destroy()
      // The auditor reports the failure, with the record.
      recordAll().then(
        () => done(error),
        () => done(error),
      )
    },
  })
  body.on('error', error => stream.destroy(error))
  return body.pipe(stream)
}
