# The command softmap in a container: docker build -t softmap . && docker run --rm softmap --help
# Model files: docker run --rm -v "$PWD:/data" softmap solve model.uai
FROM python:3.12-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends g++
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels \
    --config-settings=cmake.define.SOFTMAP_LEVELS=all /source

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels
RUN useradd --create-home softmap
USER softmap
WORKDIR /data
ENTRYPOINT ["softmap"]
CMD ["--help"]
