/**
 * The command of `start --run` for tests: prints its environment when the servers are ready, and ends with its standard input, which
 * ends with the test run, however that ends.
 */
const { AUTH_URL, FHIR_URL, APP_URL, SMART_CONFIG, FREE_PORT } = process.env
process.stdout.write(`${JSON.stringify({ AUTH_URL, FHIR_URL, APP_URL, SMART_CONFIG, FREE_PORT })}\n`)
process.stdin.resume()
