import { isRecord } from '../../src/core/index.ts'
import { resourceTypes } from '../../src/fhir/index.ts'
import { TAG_SYSTEM } from './namespace.ts'

const PASSES = 6

/** Deletes resources and all others with the tag of the run, again and again as long as others refer to some of them; answers with those that are left. */
export async function removeResources(
  baseUrl: string,
  run: string,
  made: ReadonlySet<string>,
): Promise<readonly string[]> {
  let left = [...new Set([...made, ...(await findTagged(baseUrl, run))])].toReversed()
  for (let pass = 0; pass < PASSES && left.length > 0; pass++) {
    const refused: string[] = []
    for (const local of left) if (!(await remove(`${baseUrl}/${local}`))) refused.push(local)
    left = refused
  }
  return left
}

async function remove(url: string): Promise<boolean> {
  const { status, body } = await fetch(url, { method: 'DELETE' })
  await body?.cancel()
  return status < 300 || status === 404 || status === 410
}

async function findTagged(baseUrl: string, run: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const type of resourceTypes) {
    const url = `${baseUrl}/${type}?_tag=${TAG_SYSTEM}|${run}&_elements=id&_count=500`
    const reply = await fetch(url, {
      headers: { accept: 'application/fhir+json', 'cache-control': 'no-cache' },
    })
    const bundle: unknown = reply.ok ? await reply.json() : undefined
    for (const entry of isRecord(bundle) && Array.isArray(bundle.entry) ? bundle.entry : [])
      found.push(`${type}/${entry.resource?.id}`)
  }
  return found
}
