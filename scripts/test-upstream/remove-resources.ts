const PASSES = 6

/** Deletes resources, again and again as long as others refer to some of them; answers with those that are left. */
export async function removeResources(
  baseUrl: string,
  made: ReadonlySet<string>,
): Promise<readonly string[]> {
  let left = [...made].toReversed()
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
